//! The same, slow and plain, for texts without colours and line breaks: every form at every place.

use proptest::prelude::*;

use crate::secrets::Secrets;

fn redacted(secrets: &Secrets, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut covered = 0;
    for (at, byte) in text.iter().enumerate() {
        let here = secrets.needles().each().filter(|(needle, _)| {
            let here = text.get(at..at + needle.len());
            here.is_some_and(|it| it.eq_ignore_ascii_case(needle))
        });
        if let Some((needle, label)) = here.max_by_key(|(needle, _)| needle.len()) {
            if at >= covered {
                out.extend_from_slice(secrets.marker(label).as_bytes());
            }
            covered = covered.max(at + needle.len());
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
        let mut forms: Vec<&[u8]> = secrets.needles().each().map(|(needle, _)| needle).collect();
        // As often as all forms together.
        forms.resize(2 * forms.len(), &base);
        let mut text = Vec::new();
        for (form, from, length) in parts {
            let form = form.get(&forms);
            let from = from.min(form.len());
            text.extend_from_slice(&form[from..form.len().min(from + length)]);
        }
        // What is meant by numbers is found elsewhere.
        if crate::spelled::first(&text, 0, true).is_some() {
            return Ok(());
        }
        let expected = redacted(&secrets, &text);
        prop_assert_eq!(secrets.redact(&text).escape_ascii().to_string(), expected.escape_ascii().to_string());
        let mut redactor = secrets.redactor();
        let mut out = Vec::new();
        let mut rest = &text[..];
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
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
