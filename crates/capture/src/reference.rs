//! The same, slow and plain, for texts without colours and line breaks: every form at every place.

use proptest::prelude::*;

use crate::needles::HEAD;
use crate::secrets::Secrets;
use crate::stretch::{LONGEST_STRETCH, is_padding};

/// The end of a form that stands at a place, with more blanks behind its separators than it has itself.
fn end_of(needle: &[u8], text: &[u8], at: usize) -> Option<usize> {
    let (mut known, mut end, mut skipped) = (0, at, 0);
    while known < needle.len() {
        let byte = text.get(end)?;
        if byte.eq_ignore_ascii_case(&needle[known]) {
            (known, skipped) = (known + 1, 0);
        } else if known >= HEAD && is_padding(text[end - 1], *byte) && skipped < LONGEST_STRETCH {
            skipped += 1;
        } else {
            return None;
        }
        end += 1;
    }
    Some(end)
}

fn redacted(secrets: &Secrets, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut covered = 0;
    for (at, byte) in text.iter().enumerate() {
        let needles = secrets.needles().each();
        let here = needles.filter_map(|(needle, label)| Some((end_of(needle, text, at)?, label)));
        if let Some((end, label)) = here.max_by_key(|(end, _)| *end) {
            if at >= covered {
                out.extend_from_slice(secrets.marker(label).as_bytes());
            }
            covered = covered.max(end);
        }
        if at >= covered {
            out.push(*byte);
        }
    }
    out
}

/// Parts of one text of a few letters, so that secrets overlap and share beginnings and ends.
fn values() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<u8>>)> {
    let letters = prop::sample::select(b"abcd".to_vec());
    let cuts = prop::collection::vec((0usize..16, 8usize..14), 1..6);
    (prop::collection::vec(letters, 30), cuts).prop_map(|(text, cuts)| {
        let values = cuts
            .iter()
            .map(|(from, length)| text[*from..from + length].to_vec());
        let values = values.collect();
        (text, values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_comes_out_is_what_the_slow_way_gives(
        (base, values) in values(),
        parts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, 1usize..60), 0..12),
        sizes in prop::collection::vec(1usize..20, 1..8),
    ) {
        let named = values.into_iter().enumerate().map(|(at, value)| {
            (format!("s{at}").parse().expect("a name"), value)
        });
        let Ok(secrets) = Secrets::compile(named) else {
            return Ok(());
        };
        let forms = secrets.needles().each().map(|(needle, _)| needle);
        let mut forms: Vec<&[u8]> = forms.filter(|it| !it.contains(&b'\n')).collect();
        // As often as all forms together.
        forms.resize(2 * forms.len(), &base);
        let mut text = Vec::new();
        for (form, from, length) in parts {
            let form = form.get(&forms);
            let from = from.min(form.len());
            text.extend_from_slice(&form[from..form.len().min(from + length)]);
        }
        // What is meant by numbers, and dumps, are found elsewhere.
        if crate::spelled::first(&text, 0, true).is_some() || crate::dumped::first(&text, 0).is_some() {
            return Ok(());
        }
        let expected = redacted(&secrets, &text);
        prop_assert_eq!(secrets.redact(&text).escape_ascii().to_string(), expected.escape_ascii().to_string());
        let mut redactor = secrets.redactor();
        let mut out = Vec::new();
        let mut rest = &text[..];
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            // A piece that begins as a line of a dump is read as one.
            if crate::dumped::first(chunk, 0).is_some() {
                return Ok(());
            }
            redactor.push(chunk, &mut out);
            prop_assert!(redactor.held() < secrets.longest() + crate::dumped::LINE_MOST);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        redactor.finish(&mut out);
        prop_assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
