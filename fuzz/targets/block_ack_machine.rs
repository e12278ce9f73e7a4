//! Both ends of a Block Ack agreement: MPDUs and answers are lost, Block Acks are foreign or from nowhere. Each packet has one fate and is
//! delivered at most once, in order.
//!
//! The first two bytes are the starting sequence number and whether a lost Block Ack is requested. A step is: new packets; MPDUs of the
//! next exchange that are lost, as a bit pattern that repeats; kind of answer.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::Duration;
use manet_medium::mac::block_ack::room::{MAX_HT_BYTES, MAX_PPDU_TIME};
use manet_medium::mac::block_ack::{Answer, Bitmap, Exchange, Options, Originator, Recipient, Room, Waiting, WINDOW};
use std::collections::BTreeSet;

fuzz_target!(|data: &[u8]| {
    let Some((&[high, low], mut rest)) = data.split_first_chunk() else { return };
    let options = Options { retry_limit: 4, rts_retry_limit: 2, request_after_silence: low & 1 == 1 };
    let start = u16::from_be_bytes([high, low]) >> 4;
    let mut originator = Originator::new(options, start);
    let mut recipient = Recipient::new(start);
    let (mut packets, mut open) = (0u64, BTreeSet::new());
    let (mut delivered, mut resolved) = (vec![], vec![]);
    while let Some((&[new, lost, kind], next)) = rest.split_first_chunk() {
        rest = next;
        let mut new = new % 80;
        let room = Room {
            max_mpdus: 1 + usize::from(lost % 64),
            max_bytes: MAX_HT_BYTES,
            max_airtime: MAX_PPDU_TIME,
            airtime: &|_| Duration::ZERO,
        };
        let exchange = originator.next_exchange(&room, || {
            new = new.checked_sub(1)?;
            packets += 1;
            open.insert(packets);
            Some(Waiting { packet: packets, mpdu_bytes: 100 + u32::from(lost) })
        });
        let (mut block_ack, mut singles) = (recipient.block_ack(), false);
        match exchange {
            Some(Exchange::Data { mpdus, .. }) => {
                singles = mpdus.len() == 1;
                let arrives = |(n, _): &(usize, _)| lost >> (n % 8) & 1 == 0;
                for (_, mpdu) in mpdus.into_iter().enumerate().filter(arrives) {
                    recipient.receive(mpdu.sequence, mpdu.waiting.packet, &mut delivered);
                }
                block_ack = recipient.block_ack();
            }
            Some(Exchange::Request { start }) if lost & 1 == 0 => {
                block_ack = recipient.handle_request(start, &mut delivered);
            }
            _ => {}
        }
        let answer = match kind % 8 {
            0..=2 if singles => Answer::Ack,
            0..=2 => Answer::BlockAck(block_ack),
            3 => Answer::BlockAck(Bitmap { start: u16::from(lost) * 16, bits: u64::from_be_bytes([lost; 8]) }),
            4 => Answer::NoCts,
            5 => Answer::Ack,
            _ => Answer::Nothing,
        };
        if !originator.handle_answer(answer) {
            originator.handle_answer(Answer::Nothing);
        }
        if kind % 64 == 63 {
            originator.purge().iter().for_each(|packet| assert!(open.remove(packet), "packet {packet} ends twice"));
        }
        originator.take_resolved(&mut resolved);
        for r in resolved.drain(..).filter(|r| r.fate.is_final()) {
            assert!(open.remove(&r.packet), "packet {} ends twice", r.packet);
        }
        assert_eq!(open.len(), originator.backlog());
        assert!(recipient.stored() < WINDOW);
    }
    assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]), "twice or out of order: {delivered:?}");
});
