//! The inputs of the air and of the wires, in the form of the log of inputs (formats/air.md).

use manet_medium::message;
use manet_medium::wired::{EndId, Sent};
use serde::{Deserialize, Serialize};

/// An input of the air or of the wires.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    /// To the air.
    Air(message::Input),
    /// To the wires.
    Wire(Sent),
    /// Stalls a wire, or lets it go on.
    Stall {
        /// One of its ends.
        end: EndId,
        /// Whether it sends nothing.
        stalled: bool,
    },
}

impl Input {
    /// The frame that it carries.
    pub fn frame_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Input::Air(message::Input::Packet { frame, .. } | message::Input::Mpdu { frame, .. })
            | Input::Wire(Sent { frame, .. }) => Some(frame),
            _ => None,
        }
    }
}
