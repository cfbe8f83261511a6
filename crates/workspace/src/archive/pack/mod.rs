//! Writing archives, to whoever takes the bytes as they come.

mod exactly;
mod tar;
mod zip;

use std::io::{self, Read};

use crate::stat::Stat;

pub(crate) use self::exactly::Exactly;
pub(crate) use self::tar::{Compressed, tar_packer};
pub(crate) use self::zip::zip_packer;

/// Paths are relative to the top of the archive.
pub(crate) trait Packer {
    /// Whether the format can carry the name.
    fn takes(&self, path: &[u8]) -> bool;
    fn directory(&mut self, path: &[u8], stat: &Stat) -> io::Result<()>;
    fn link(&mut self, path: &[u8], stat: &Stat, text: &[u8]) -> io::Result<()>;
    /// `contents` gives exactly as many bytes as `stat` says.
    fn file(&mut self, path: &[u8], stat: &Stat, contents: &mut dyn Read) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}
