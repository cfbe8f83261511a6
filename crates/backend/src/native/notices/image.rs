//! Which program a process is right now. The kernel gives every program 16 random bytes when it
//! starts, and keeps a list of where they and other things lie: both together are that program's
//! alone, whatever it is called and however often it was started before.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::memory::{bytes, text};
use crate::native::processes::Fate;

/// Of linux/auxvec.h.
const AT_NULL: u64 = 0;
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;

/// More than any kernel lists.
const LIST_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    list: Vec<u8>,
    random: [u8; 16],
    name: u64,
}

/// What can be seen of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Image(Image),
    /// It is between two programs.
    Between,
    /// It is not ours to look into.
    Hidden,
    /// It has ended, and never became another program than the one that made it.
    NeverExecuted,
    /// It has ended.
    Gone,
}

impl Seen {
    pub(super) fn of(process: i32) -> Self {
        match look(process) {
            Ok(Some(image)) => Self::Image(image),
            Err(Errno::PERM | Errno::ACCESS) => Self::Hidden,
            // Its memory is taken from it when it ends.
            Ok(None) | Err(_) => match Fate::of(process) {
                Fate::Lives => Self::Between,
                Fate::EndedAsMade => Self::NeverExecuted,
                Fate::Ended => Self::Gone,
            },
        }
    }
}

fn look(process: i32) -> Result<Option<Image>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("/proc/{process}/auxv"), flags, Mode::empty())?;
    let mut list = vec![0; LIST_MAX];
    let length = rustix::io::read(file, &mut list)?;
    list.truncate(length);
    let (Some(random_at), Some(name)) = (value(&list, AT_RANDOM), value(&list, AT_EXECFN)) else {
        // A program can take these from its own list, and is another one than before all the same.
        let is_own = list.iter().any(|byte| *byte != 0);
        return Ok(is_own.then_some(Image {
            list,
            random: [0; 16],
            name: 0,
        }));
    };
    let mut random = [0; 16];
    bytes(process, random_at, &mut random)?;
    Ok(Some(Image { list, random, name }))
}

fn value(list: &[u8], wanted: u64) -> Option<u64> {
    let (pairs, _) = list.as_chunks::<16>();
    let number = |half: &[u8]| half.first_chunk().map(|it| u64::from_ne_bytes(*it));
    for pair in pairs {
        let (key, value) = pair.split_at(8);
        match number(key)? {
            AT_NULL => return None,
            key if key == wanted => return number(value),
            _ => {}
        }
    }
    None
}

impl Image {
    /// The path that it was started by.
    pub(super) fn name(&self, process: i32) -> Option<Vec<u8>> {
        const PATH_MAX: usize = 4096;
        let (name, whole) = text(process, self.name, PATH_MAX).ok()?;
        whole.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_itself_and_no_other() {
        let own = std::process::id().cast_signed();
        let seen = Seen::of(own);
        assert_eq!(seen, Seen::of(own));
        let Seen::Image(image) = seen else {
            panic!("{seen:?}")
        };
        let name = image.name(own).unwrap();
        assert!(!name.is_empty());
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let theirs = other.id().cast_signed();
        // The library returns when its memory is another's, which is a moment too early.
        let soon = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let seen = std::iter::repeat_with(|| Seen::of(theirs))
            .find(|seen| *seen != Seen::Between || std::time::Instant::now() > soon);
        other.kill().unwrap();
        other.wait().unwrap();
        let Some(Seen::Image(seen)) = seen else {
            panic!("{seen:?}")
        };
        assert_ne!(seen, image);
        assert_eq!(Seen::of(theirs), Seen::Gone);
    }
}
