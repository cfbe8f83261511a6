//! The keys that take a terminal away from a session, found in what is typed.

use std::fmt;
use std::str::FromStr;

/// More would never be pressed.
const MOST: usize = 8;

/// As they were named, and what they send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKeys {
    name: String,
    sent: Vec<u8>,
}

impl Default for DetachKeys {
    /// The key that telnet leaves by: few programs use it.
    fn default() -> Self {
        Self {
            name: "C-]".to_owned(),
            sent: vec![0x1d],
        }
    }
}

impl fmt::Display for DetachKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for DetachKeys {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            "keys are `C-` and a character, or a character, with commas between them; or `none`";
        let sent: Option<Vec<u8>> = match text {
            "none" => Some(Vec::new()),
            keys => keys.split(',').map(key).collect(),
        };
        let sent = sent.filter(|it| it.len() <= MOST).ok_or(wrong)?;
        Ok(Self {
            name: text.to_owned(),
            sent,
        })
    }
}

fn key(name: &str) -> Option<u8> {
    let held = ["C-", "ctrl-", "Ctrl-"]
        .iter()
        .find_map(|it| name.strip_prefix(it));
    let one = |text: &str| match text.as_bytes() {
        [byte @ b'!'..=b'~'] => Some(*byte),
        _ => None,
    };
    match held {
        None => one(name),
        Some(rest) => match one(rest)?.to_ascii_uppercase() {
            byte @ b'@'..=b'_' => Some(byte & 0x1f),
            _ => None,
        },
    }
}

impl DetachKeys {
    /// No key detaches.
    pub(crate) fn are_none(&self) -> bool {
        self.sent.is_empty()
    }
}

/// Reads along with what is typed.
#[derive(Debug)]
pub(super) struct Watch {
    keys: Vec<u8>,
    /// How many of them were pressed last.
    pressed: usize,
}

impl Watch {
    pub(super) fn new(keys: &DetachKeys) -> Self {
        Self {
            keys: keys.sent.clone(),
            pressed: 0,
        }
    }

    /// What is for the program, and whether the keys were pressed after it. Keys that may be the
    /// beginning of them wait for the next one.
    pub(super) fn typed(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut rest = Vec::with_capacity(bytes.len());
        if self.keys.is_empty() {
            return (bytes.to_vec(), false);
        }
        for byte in bytes {
            // The longest beginning of the keys that what was pressed last ends with.
            let mut held = [&self.keys[..self.pressed], &[*byte]].concat();
            while !self.keys.starts_with(&held) {
                rest.push(held.remove(0));
            }
            self.pressed = held.len();
            if self.pressed == self.keys.len() {
                self.pressed = 0;
                return (rest, true);
            }
        }
        (rest, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(keys: &str) -> Watch {
        Watch::new(&keys.parse().unwrap())
    }

    #[test]
    fn keys_are_named_as_people_name_them() {
        for (name, sent) in [
            ("C-]", &b"\x1d"[..]),
            ("ctrl-p,ctrl-q", b"\x10\x11"),
            ("C-a,d", b"\x01d"),
            ("~", b"~"),
            ("none", b""),
        ] {
            let keys: DetachKeys = name.parse().unwrap();
            assert_eq!(
                (keys.sent.as_slice(), keys.to_string()),
                (sent, name.to_owned())
            );
        }
        assert_eq!("C-]".parse(), Ok(DetachKeys::default()));
        for wrong in ["", "C-", "C-1", "ab", "C-p,", "é", "a,b,c,d,e,f,g,h,i"] {
            assert!(wrong.parse::<DetachKeys>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_typed_before_the_keys_is_passed_on() {
        assert_eq!(watch("C-]").typed(b"ab\x1dcd"), (b"ab".to_vec(), true));
        assert_eq!(watch("none").typed(b"ab\x1d"), (b"ab\x1d".to_vec(), false));
    }

    #[test]
    fn a_beginning_waits_and_is_not_lost() {
        let mut two = watch("C-p,C-q");
        assert_eq!(two.typed(b"a\x10"), (b"a".to_vec(), false));
        assert_eq!(two.typed(b"b"), (b"\x10b".to_vec(), false));
        assert_eq!(two.typed(b"\x10"), (vec![], false));
        assert_eq!(two.typed(b"\x10"), (b"\x10".to_vec(), false));
        assert_eq!(two.typed(b"\x11x"), (vec![], true));
        let mut same = watch("a,a,b");
        assert_eq!(same.typed(b"aaab"), (b"a".to_vec(), true));
    }
}
