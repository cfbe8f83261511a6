//! Extended headers. A record says its own length, so a value may hold any byte, a line break too.

use super::refusal::Refusal;

/// What of it counts here. Owners, times and attributes of any kind are dropped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

impl Pax {
    pub(super) fn parse(mut records: &[u8]) -> Result<Self, Refusal> {
        let mut pax = Self::default();
        while !records.is_empty() {
            let (key, value, rest) = split(records).ok_or(Refusal::Extension)?;
            records = rest;
            match key {
                b"path" => once(&mut pax.path, value.to_vec(), "path")?,
                b"linkpath" => once(&mut pax.link, value.to_vec(), "target")?,
                b"size" => once(&mut pax.size, number(value).ok_or(Refusal::Size)?, "size")?,
                // The real name and size of a sparse file stand in its records or its contents.
                _ if key.starts_with(b"GNU.sparse.") => return Err(Refusal::Sparse),
                _ => {}
            }
        }
        Ok(pax)
    }

    /// A global header holds for every entry after it. None that is in use says anything that
    /// would count here, and one that did would change what other headers mean.
    pub(super) fn says_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Which of two counts is where readers differ.
fn once<T>(slot: &mut Option<T>, value: T, what: &'static str) -> Result<(), Refusal> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::Disagree(what)),
    }
}

/// Key, value and what follows.
fn split(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&records[..space])?).ok()?;
    let record = records.get(space + 1..length)?;
    let (end, record) = record.split_last()?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    (*end == b'\n').then_some((&record[..equals], &record[equals + 1..], &records[length..]))
}

/// Digits alone: `str::parse` would take a sign too.
fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_may_hold_a_line_break() {
        let pax = Pax::parse(b"30 SCHILY.xattr.user.a=x\nyzw\n\n11 path=ab\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(b"ab".as_slice()));
    }

    #[test]
    fn records_that_readers_could_take_differently_are_refused() {
        let cases: [(&[u8], Refusal); 8] = [
            (b"11 path=ab\n11 path=cd\n", Refusal::Disagree("path")),
            (b"10 size=1\n10 size=1\n", Refusal::Disagree("size")),
            (b"11 size=-1\n", Refusal::Size),
            (b"11 size=+1\n", Refusal::Size),
            (b"30 size=999999999999999999999\n", Refusal::Size),
            (b"12 path=ab\n", Refusal::Extension),
            (b"99999 path=ab\n", Refusal::Extension),
            (b"25 GNU.sparse.realsize=1\n", Refusal::Sparse),
        ];
        for (records, refusal) in cases {
            let shown = records.escape_ascii();
            assert_eq!(Pax::parse(records), Err(refusal), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Pax::parse(&bytes);
        }
    }
}
