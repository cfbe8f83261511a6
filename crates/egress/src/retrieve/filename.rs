//! A name for what was fetched. The server chooses it, so nothing of it is believed.

use percent_encoding::percent_decode;
use url::Url;

const LONGEST: usize = 100;
const HEADER_MOST: usize = 4096;

/// By the `Content-Disposition` header, else by the last part of the path. None if nothing that
/// can be a name is left.
pub(super) fn suggested(disposition: Option<&[u8]>, url: &Url) -> Option<String> {
    let declared = disposition.and_then(declared);
    let last = || {
        let last = url.path_segments()?.next_back()?;
        Some(
            percent_decode(last.as_bytes())
                .decode_utf8_lossy()
                .into_owned(),
        )
    };
    declared.and_then(|it| safe(&it)).or_else(|| safe(&last()?))
}

/// `filename*` before `filename`, as RFC 6266 has it.
fn declared(header: &[u8]) -> Option<String> {
    let header = header.get(..HEADER_MOST).unwrap_or(header);
    let text = String::from_utf8_lossy(header);
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters(&text) {
        match name.as_str() {
            "filename" if plain.is_none() => plain = Some(value),
            "filename*" if extended.is_none() => extended = decoded(&value),
            _ => {}
        }
    }
    extended.or(plain)
}

/// The parameters after the first `;`. Quotes may hold a `;` and escape a quote.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        found.push((name.trim().to_ascii_lowercase(), value));
        rest = next.split_once(';').map_or("", |(_, rest)| rest);
    }
    found
}

fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, it)| it)),
            other => value.push(other),
        }
    }
    (value, "")
}

/// `UTF-8''percent-encoded`.
fn decoded(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, text) = rest.split_once('\'')?;
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let text = percent_decode(text.as_bytes()).decode_utf8().ok()?;
    Some(text.into_owned())
}

/// What remains is one name: of letters, digits and a few signs, that is not hidden, means no
/// device anywhere, and is no option.
fn safe(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept =
        |it: char| it.is_alphanumeric() || matches!(it, '.' | '-' | '_' | ' ' | '(' | ')' | '+');
    let replaced: String = last
        .chars()
        .filter(|it| !it.is_control())
        .map(|it| if kept(it) { it } else { '_' })
        .collect();
    let trimmed = replaced.trim_start_matches(['.', '-', ' ', '_']);
    let mut trimmed = trimmed.to_owned();
    if trimmed.len() > LONGEST {
        // Keeps a short ending, by which files are known.
        let ending = trimmed.rfind('.').filter(|at| trimmed.len() - at <= 16);
        let ending = ending.map(|at| trimmed.split_off(at)).unwrap_or_default();
        trimmed.truncate(trimmed.floor_char_boundary(LONGEST - ending.len()));
        trimmed.push_str(&ending);
    }
    let trimmed = trimmed.trim_end_matches(['.', ' ']);
    let stem = trimmed.split('.').next().unwrap_or_default().trim_end();
    match trimmed.is_empty() || is_device(stem) {
        true => None,
        false => Some(trimmed.to_owned()),
    }
}

fn is_device(stem: &str) -> bool {
    let stem = stem.to_ascii_uppercase();
    let numbered = |prefix: &str| {
        let rest = stem.strip_prefix(prefix);
        rest.is_some_and(|it| it.len() == 1 && it.bytes().all(|it| it.is_ascii_digit()))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(header: &[u8]) -> Option<String> {
        suggested(Some(header), &Url::parse("https://e.com/").unwrap())
    }

    #[test]
    fn a_servers_name_is_no_path_and_no_header() {
        for (header, expected) in [
            (
                &b"attachment; filename=\"../../.bashrc\""[..],
                Some("bashrc"),
            ),
            (b"attachment; filename*=UTF-8''%2e%2e%2fx", Some("x")),
            (
                b"attachment; filename=\"a\r\nSet-Cookie: b\"",
                Some("aSet-Cookie_ b"),
            ),
            (b"attachment; filename=..\\..\\boot.ini", Some("boot.ini")),
            (
                b"attachment; filename=\"a\\\"b;c.txt\"; x=y",
                Some("a_b_c.txt"),
            ),
            (
                b"attachment; filename=a.txt; filename*=UTF-8''%c3%a9.txt",
                Some("\u{e9}.txt"),
            ),
            (b"attachment; filename=-rf", Some("rf")),
            (b"attachment; filename=CON.txt", None),
            (b"attachment; filename=\"..\"", None),
            (b"attachment; filename=\"\xff\xfe\"", None),
            (b"attachment", None),
            (b"filename=x", None),
        ] {
            let shown = String::from_utf8_lossy(header);
            assert_eq!(of(header).as_deref(), expected, "{shown}");
        }
    }

    #[test]
    fn without_a_header_the_path_names_it() {
        for (url, expected) in [
            ("https://e.com/a/report.pdf?x=1", Some("report.pdf")),
            ("https://e.com/a/%2e%2e%2fetc%2fpasswd", Some("passwd")),
            ("https://e.com/", None),
        ] {
            assert_eq!(
                suggested(None, &Url::parse(url).unwrap()).as_deref(),
                expected
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_declared_one_plain_name_comes_out(header: Vec<u8>, name in "\\PC{0,150}") {
            let url = Url::parse("https://e.com/").unwrap();
            let quoted = format!("attachment; filename=\"{name}\"");
            for header in [header.as_slice(), quoted.as_bytes()] {
                if let Some(name) = suggested(Some(header), &url) {
                    prop_assert!(!name.is_empty() && name.len() <= LONGEST);
                    prop_assert!(!name.contains(['/', '\\', '\0', '"', ':', '\n', '\r']));
                    prop_assert!(!name.starts_with(['.', '-', ' ']) && !name.ends_with(['.', ' ']));
                    prop_assert!(!name.chars().any(char::is_control));
                }
            }
        }
    }
}
