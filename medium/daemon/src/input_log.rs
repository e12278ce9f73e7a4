//! The log of inputs on its way to the recorder's thread: what the machine writes waits here until the next hand-over, so that
//! no disk ever stalls the medium.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// A clone is the same text.
#[derive(Clone, Debug, Default)]
pub struct InputLog(Rc<RefCell<Vec<u8>>>);

impl InputLog {
    /// What was written since the last call.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}

impl Write for InputLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
