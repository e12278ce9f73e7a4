//! The log of inputs before it reaches the recorder's thread: a buffer that the machine fills until the next batch, so that
//! no disk stalls the medium.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// The buffer. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct InputLog(Rc<RefCell<Vec<u8>>>);

impl InputLog {
    /// Removes and returns the lines written since the last call.
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
