//! Fields of our packets as tshark prints them, normalised over its versions and dissectors. Tests of our messages compare
//! with them.

use std::ops::Deref;
use std::process::Command;

/// A capture in the libpcap format (version 2.4, microseconds), link type 228: IPv4 without a link layer.
fn pcap<P: Deref<Target = [u8]>>(packets: &[P]) -> Vec<u8> {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 228]);
    for (n, packet) in packets.iter().enumerate() {
        file.extend(words(&[n as u32, 0, packet.len() as u32, packet.len() as u32]));
        file.extend(&packet[..]);
    }
    file
}

/// The values of `fields` in each IPv4 packet, separated by `|`; `None`, with a message: tshark is not installed. `name`: of
/// the capture, which no other test of the process may use.
///
/// # Panics
/// If the capture cannot be written, or tshark fails.
pub fn fields<P: Deref<Target = [u8]>>(name: &str, packets: &[P], fields: &[&str]) -> Option<Vec<String>> {
    let file = std::env::temp_dir().join(format!("manet-{name}-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(packets)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_file(&file).unwrap();
    let Ok(output) = output else {
        eprintln!("SKIPPED: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(normalised).collect())
}

/// A line of values: booleans as 1 and 0 (tshark 4.0 prints these, 4.4 `True` and `False`), numbers in decimal (some
/// dissectors print hexadecimal). Commas separate several values of one field.
fn normalised(line: &str) -> String {
    line.split('|').map(|field| field.split(',').map(value).collect::<Vec<_>>().join(",")).collect::<Vec<_>>().join("|")
}

fn value(printed: &str) -> String {
    let hexadecimal = printed.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match (printed, hexadecimal) {
        ("True", _) => "1".to_owned(),
        ("False", _) => "0".to_owned(),
        (_, Some(number)) => number.to_string(),
        (other, None) => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_a_header_and_each_packet_behind_its_number_and_lengths() {
        let file = pcap(&[vec![0x45, 1], vec![]]);
        assert_eq!((file.len(), &file[..4], file[20]), (24 + 16 + 2 + 16, [0xd4, 0xc3, 0xb2, 0xa1].as_slice(), 228));
        assert_eq!(file[24..42], [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0x45, 1]);
    }

    #[test]
    fn both_versions_give_the_same_line() {
        // an AODV request with G and U, a DSR source route of two external hops: tshark 4.0.17 (Debian 12), then 4.4 (13)
        let request = ["1|1|0|1|2|77|10.0.0.4|10.0.0.1|258|", "1|True|False|True|2|77|10.0.0.4|10.0.0.1|258|"];
        let route = ["1|1|9|1|0x004d|2000||1", "True|True|9|1|0x004d|2000||1"];
        assert_eq!(request.map(normalised), [request[0], request[0]]);
        assert_eq!(route.map(normalised), ["1|1|9|1|77|2000||1"; 2]);
    }

    #[test]
    fn other_values_stay() {
        let line = "10.0.0.2,10.0.0.3|0x0a,True,0|0xyz|Trueish|";
        assert_eq!(normalised(line), "10.0.0.2,10.0.0.3|10,1,0|0xyz|Trueish|");
    }
}
