//! However a stream is cut, the same comes out.

use proptest::prelude::*;

use crate::spelling::{AWKWARD, forms};
use crate::{holds, name, secrets, shown, streamed};
use glovebox_capture::Secrets;

const PLAIN: &str = "sk-live-T0pS3cretV4lue_x9";

#[test]
fn every_form_is_masked_wherever_the_stream_is_cut() {
    let mut seen = 0;
    for value in [PLAIN, AWKWARD, "häßlich-日本-🔑"] {
        let secrets = secrets(&[("db", value.as_bytes())]);
        for (form, spelled) in forms(value) {
            let text = [b"before:", &spelled[..], b":after"].concat();
            let whole = secrets.redact(&text);
            let context = format!("{form}: {}", shown(&text));
            assert_eq!(shown(&whole), "before:[secret db]:after", "{context}");
            for cut in 0..=text.len() {
                let (one, other) = text.split_at(cut);
                let out = streamed(&secrets, [one, other]);
                assert_eq!(shown(&out), shown(&whole), "{context} at {cut}");
            }
            let bytes = streamed(&secrets, text.chunks(1));
            assert_eq!(shown(&bytes), shown(&whole), "{context}, byte by byte");
            seen += 1;
        }
    }
    assert!(seen > 120, "only {seen} forms");
}

#[test]
fn streams_that_run_side_by_side_do_not_mix() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    let (mut one, mut other) = (secrets.redactor(), secrets.redactor());
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (at, byte) in PLAIN.bytes().enumerate() {
        assert_eq!((one.held(), other.held()), (at, at));
        one.push(&[byte], &mut first);
        other.push(&[byte], &mut second);
    }
    one.finish(&mut first);
    other.push(b"!", &mut second);
    other.finish(&mut second);
    assert_eq!(
        (shown(&first), shown(&second)),
        ("[secret db]".into(), "[secret db]!".into())
    );
}

#[test]
fn what_overlaps_leaves_nothing_over() {
    let secrets = secrets(&[
        ("one", b"abcd1234efgh"),
        ("two", b"efghWXYZ5678"),
        ("three", b"abcd1234"),
    ]);
    for (text, expected) in [
        ("abcd1234", "[secret three]"),
        ("abcd1234efg", "[secret three]efg"),
        ("abcd1234efgh", "[secret one]"),
        ("abcd1234efghWXYZ5678", "[secret one]"),
        ("abcd1234efghWXYZ567", "[secret one]WXYZ567"),
        ("abcd1234abcd1234efgh", "[secret three][secret one]"),
        ("abcabcd1234", "abc[secret three]"),
    ] {
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            let out = streamed(&secrets, [one, other]);
            assert_eq!(shown(&out), expected, "{text} at {cut}");
        }
    }
}

#[test]
fn colours_and_line_breaks_do_not_hide_a_secret() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    for between in [
        "\x1b[0m",
        "\x1b[01;31m\x1b[K",
        "\x1b[m\x1b[K",
        "\x1b(B\x1b[m",
    ] {
        for at in 1..PLAIN.len() {
            let (one, other) = PLAIN.split_at(at);
            let text = format!("\x1b[1m<{one}{between}{other}>\x1b[0m");
            let out = streamed(&secrets, text.as_bytes().chunks(1));
            assert_eq!(shown(&out), "\\x1b[1m<[secret db]>\\x1b[0m", "{at}");
            assert_eq!(secrets.redact(text.as_bytes()), out);
        }
        let every: Vec<String> = PLAIN.chars().map(|it| it.to_string()).collect();
        let text = every.join(between);
        assert_eq!(shown(&secrets.redact(text.as_bytes())), "[secret db]");
    }
    for line_break in ["\n", "\r\n", "\n    ", "\\n", "\\r\\n"] {
        for at in 8..PLAIN.len() {
            let (one, other) = PLAIN.split_at(at);
            let text = format!("{one}{line_break}{other}\n");
            let out = streamed(&secrets, text.as_bytes().chunks(1));
            assert_eq!(shown(&out), "[secret db]\\n", "{at} {line_break:?}");
        }
    }
}

#[test]
fn endless_colours_are_not_held_back() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    for filling in [
        &b"\x1b[0m"[..],
        b"\n",
        b"\x1b[1;2;3;4;5",
        b"\n    ",
        b"\x1b",
    ] {
        let mut redactor = secrets.redactor();
        let mut out = Vec::new();
        redactor.push(&PLAIN.as_bytes()[..12], &mut out);
        for _ in 0..1000 {
            redactor.push(filling, &mut out);
            assert!(redactor.held() < 200, "{}", redactor.held());
        }
        redactor.finish(&mut out);
        assert_eq!(
            out,
            [&PLAIN.as_bytes()[..12], &filling.repeat(1000)].concat()
        );
    }
}

#[test]
fn a_set_is_the_same_made_at_once_or_of_two() {
    let first = secrets(&[("one", b"first-value-1"), ("both", b"shared-value-old")]);
    let second = secrets(&[("two", b"second-value-2"), ("both", b"shared-value-new")]);
    let union = first.union(&second).unwrap();
    let text = b"first-value-1 second-value-2 shared-value-old shared-value-new";
    let expected = "[secret one] [secret two] [secret both] [secret both]";
    assert_eq!(shown(&union.redact(text)), expected);
    assert_eq!(union.names().len(), 3);
    let none = Secrets::none();
    assert_eq!(shown(&none.union(&union).unwrap().redact(text)), expected);
    assert_eq!(shown(&union.union(&none).unwrap().redact(text)), expected);
}

#[test]
fn a_name_that_is_a_secret_is_not_shown() {
    let secrets = secrets(&[
        ("hunter2-hunter2", b"hunter2-hunter2"),
        ("db", b"other-value-1"),
    ]);
    let out = secrets.redact(b"hunter2-hunter2 other-value-1");
    assert_eq!(shown(&out), "[secret] [secret db]");
}

#[test]
fn json_stays_json() {
    let secrets = secrets(&[("db", b"abcdefg12\\"), ("key", b"p\"ass/word\\1")]);
    let mut value = serde_json::json!({
        "abcdefg12\\": ["x", {"y": "abcdefg12\\\"z", "n": 12}],
        "b": "a p\"ass/word\\1 z",
        "c": null,
    });
    assert!(secrets.redact_json(&mut value));
    let expected = serde_json::json!({
        "[secret db]": ["x", {"y": "[secret db]\"z", "n": 12}],
        "b": "a [secret key] z",
        "c": null,
    });
    assert_eq!(value, expected);
    assert!(!secrets.redact_json(&mut value));
    assert_eq!(value, expected);
}

#[test]
fn nothing_shows_a_value_when_it_is_debugged() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    redactor.push(&PLAIN.as_bytes()[..20], &mut out);
    assert_eq!(redactor.held(), 20);
    let shown = format!("{secrets:?} {redactor:?} {:#?}", redactor);
    assert!(
        !shown.contains("T0pS3c") && !shown.contains("115"),
        "{shown}"
    );
}

/// Parts that make up, touch and nearly make up secrets.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let fixed: Vec<Vec<u8>> = [
        "abcd1234",
        "1234efgh",
        "abcd",
        "efgh",
        "1234",
        "abcd1234efgh",
        "\x1b[0m",
        "\x1b[",
        "\x1b",
        "\n",
        "\r\n",
        "\r",
        "\\n",
        "\\",
        "  ",
        "YWJjZDEyMzRlZmdo",
        "ZmdoIn4_",
        "61626364",
        "[secret a]",
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wYWJjZDEyMzRlZmdoYWJj",
        "line-one-of-it\n  line-two-of-it",
        "line-one-of-it",
        "line-two-of-it",
        "us\npa-ss-wo",
        "us\r\npa-ss-wo",
        "bin\x1b[0m\x1b(",
        "bin\x1b",
    ]
    .iter()
    .map(|it| it.as_bytes().to_vec())
    .collect();
    prop_oneof![
        6 => prop::sample::select(fixed),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

fn nasty() -> Secrets {
    secrets(&[
        ("a", b"abcd1234efgh"),
        ("b", b"1234efghabcd"),
        ("c", b"abcd1234"),
        ("d", b"line-one-of-it\n  line-two-of-it\nend"),
        ("e", b"us\npa-ss-wo"),
        ("f", b"bin\x1b[0m\x1b(bin"),
        ("g", b"abcd1234\\"),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_is_its_whole_however_it_is_cut(
        parts in prop::collection::vec(part(), 0..24),
        lengths in prop::collection::vec(1usize..40, 1..40),
    ) {
        let text = parts.concat();
        let secrets = nasty();
        let whole = secrets.redact(&text).into_owned();
        let mut rest = &text[..];
        let mut chunks = Vec::new();
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*length).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(shown(&streamed(&secrets, chunks)), shown(&whole));
        prop_assert_eq!(shown(&streamed(&secrets, text.chunks(1))), shown(&whole));
        for value in [&b"abcd1234"[..], b"1234efghabcd", b"line-one-of-it", b"YWJjZDEyMzRlZmdo"] {
            prop_assert!(!holds(&whole, value), "{}", shown(&whole));
        }
        prop_assert_eq!(secrets.find(&text).is_some(), whole != text);
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is(text in prop::collection::vec(any::<u8>(), 0..4096)) {
        let secrets = secrets(&[("db", PLAIN.as_bytes()), ("awkward", AWKWARD.as_bytes())]);
        prop_assert!(matches!(secrets.redact(&text), std::borrow::Cow::Borrowed(_)));
        prop_assert_eq!(streamed(&secrets, text.chunks(7)), text);
    }

    #[test]
    fn any_bytes_can_be_a_secret(value in prop::collection::vec(any::<u8>(), 8..64)) {
        let Ok(secrets) = Secrets::compile([(name("db"), value.clone())]) else {
            return Ok(());
        };
        let value = value.trim_ascii();
        let text = [b"<", value, b">"].concat();
        prop_assert_eq!(shown(&secrets.redact(&text)), "<[secret db]>");
        prop_assert_eq!(shown(&streamed(&secrets, text.chunks(1))), "<[secret db]>");
    }
}

#[test]
fn bytes_that_are_no_text_stay_what_they_are_in_json() {
    let secrets = secrets(&[("db", b"xK9q2Lm8Rt4Vz7Wy")]);
    let written = |bytes: &[u8]| {
        let bytes = glovebox_model::ByteString::new(bytes).unwrap();
        serde_json::to_value(bytes).unwrap()
    };
    for (before, after) in [
        (
            &b"a\xff/xK9q2Lm8Rt4Vz7Wy.txt"[..],
            &b"a\xff/[secret db].txt"[..],
        ),
        (b"xK9q2Lm8Rt4Vz7Wy", b"[secret db]"),
    ] {
        let mut value = serde_json::json!({ "path": written(before) });
        assert!(secrets.redact_json(&mut value));
        assert_eq!(value, serde_json::json!({ "path": written(after) }));
    }
    let mut other = serde_json::json!({"hex": "no digits"});
    assert!(!secrets.redact_json(&mut other));
}
