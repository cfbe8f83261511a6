//! What a request says about the file that it expects, and about the part that it wants.

use axum::http::{HeaderMap, header};
use glovebox_workspace::files::{Etag, Range};

use crate::failure::{Answer, Failure};

/// The versions that a header names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tags {
    Any,
    These(Vec<Tag>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    etag: Etag,
    weak: bool,
}

impl Tags {
    /// For a write: only the very same.
    pub(super) fn holds(&self, etag: &Etag) -> bool {
        match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| !tag.weak && tag.etag == *etag),
        }
    }

    /// For a read: a weak mark will do.
    pub(super) fn names(&self, etag: &Etag) -> bool {
        match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| tag.etag == *etag),
        }
    }
}

pub(super) fn tags(headers: &HeaderMap, name: &header::HeaderName) -> Answer<Option<Tags>> {
    let mut all = Vec::new();
    // One without a value says nothing.
    let given = headers.get_all(name).iter().filter(|it| !it.is_empty());
    let wrong = || {
        Failure::invalid(format!(
            "`{name}` must be `*`, or marks in quotation marks with commas between them"
        ))
        .hint("a mark is in the header `ETag`, and in `etag` of a file's description")
    };
    for value in given {
        let text = value.to_str().map_err(|_| wrong())?.trim();
        if text == "*" {
            return Ok(Some(Tags::Any));
        }
        let mut rest = text;
        loop {
            let (tag, after) = tag(rest).ok_or_else(wrong)?;
            all.push(tag);
            rest = match after.trim_start() {
                "" => break,
                after => after.strip_prefix(',').ok_or_else(wrong)?.trim_start(),
            };
        }
    }
    Ok((!all.is_empty()).then_some(Tags::These(all)))
}

/// The one that the text begins with, and what follows it. A mark may hold commas.
fn tag(text: &str) -> Option<(Tag, &str)> {
    let (weak, text) = match text.strip_prefix("W/") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (inner, rest) = text.strip_prefix('"')?.split_once('"')?;
    let plain = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_graphic());
    let etag = Etag::new(inner);
    plain.then_some((Tag { etag, weak }, rest))
}

/// The part that is wanted. What is no range, or more than one, is as if nothing was said: HTTP
/// lets a server answer with the whole.
pub(super) fn range(headers: &HeaderMap) -> Option<Range> {
    let mut given = headers.get_all(header::RANGE).iter();
    let text = given.next()?.to_str().ok()?;
    if given.next().is_some() {
        return None;
    }
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    match (first.trim(), last.trim()) {
        ("", last) => number(last).map(Range::Last),
        (first, "") => Some(Range::From {
            first: number(first)?,
            last: None,
        }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Range::From {
                first,
                last: Some(last),
            })
        }
    }
}

/// The version that a part is wanted of. A date, or a weak mark, is never it.
pub(super) fn if_range(headers: &HeaderMap) -> Option<Option<Etag>> {
    let value = headers.get(header::IF_RANGE)?;
    let tag = value.to_str().ok().and_then(|text| tag(text.trim()));
    let strong = tag.filter(|(tag, rest)| !tag.weak && rest.is_empty());
    Some(strong.map(|(tag, _)| tag.etag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_range_is_one_range_or_nothing() {
        let read = |text| range(&with(header::RANGE, text));
        let from = |first, last| Some(Range::From { first, last });
        assert_eq!(read("bytes=0-0"), from(0, Some(0)));
        assert_eq!(read("Bytes = 5 - "), from(5, None));
        assert_eq!(read("bytes=-7"), Some(Range::Last(7)));
        let huge = format!("bytes=0-{}", "9".repeat(40));
        assert_eq!(read(&huge), from(0, Some(u64::MAX)));
        for nothing in [
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=1-2,4-5",
            "bytes=a-b",
            "bytes=+1-2",
            "items=0-1",
            "bytes 0-1",
            "bytes=--1",
            "bytes=1-2-3",
        ] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn marks_are_read_as_they_are_written() {
        let read = |text| tags(&with(header::IF_MATCH, text), &header::IF_MATCH);
        let etag = Etag::new("ab");
        assert_eq!(read("*").unwrap(), Some(Tags::Any));
        let two = read("\"x\", \"ab\"").unwrap().unwrap();
        assert!(two.holds(&etag) && two.names(&etag));
        let commas = read("\"a,b\",W/\",\" , \"ab\"").unwrap().unwrap();
        assert!(commas.holds(&Etag::new("a,b")) && commas.names(&Etag::new(",")));
        assert!(commas.holds(&etag));
        let weak = read("W/\"ab\"").unwrap().unwrap();
        assert!(!weak.holds(&etag) && weak.names(&etag));
        for wrong in [
            "ab",
            "\"ab",
            "\"\"",
            "w/\"ab\"",
            "\"a b\"",
            "\"ab\",",
            "*,\"ab\"",
            "\"ab\"\"cd\"",
            "\"ab\",,\"cd\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let empty = tags(&HeaderMap::new(), &header::IF_MATCH).unwrap();
        assert_eq!(empty, None);
        assert_eq!(read("").unwrap(), None);
    }
}
