//! Output of tshark (`-T fields -E separator='|'`), normalised over its versions and dissectors. Tests of our messages
//! compare with it.

/// A line of values: booleans as 1 and 0 (tshark 4.0 prints these, 4.4 `True` and `False`), numbers in decimal (some
/// dissectors print hexadecimal). Commas separate several values of one field.
pub fn normalised(line: &str) -> String {
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
