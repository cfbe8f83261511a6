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
            let in_time = windowed(&secrets, [&text[..]], text.len());
            assert_eq!(shown(&in_time), shown(&whole), "{context}, in time");
            let slowly = windowed(&secrets, [&text[..]], 3);
            assert_eq!(shown(&slowly), shown(&whole), "{context}, let out slowly");
            let bytes = streamed(&secrets, text.chunks(1));
            assert_eq!(shown(&bytes), shown(&whole), "{context}, byte by byte");
            seen += 1;
        }
    }
    assert!(seen > 120, "only {seen} forms");
}

/// What comes out when all has come and so much is let out at a time.
fn windowed<'a>(
    secrets: &Secrets,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    step: usize,
) -> Vec<u8> {
    let mut window = secrets.window();
    chunks.into_iter().for_each(|chunk| window.push(chunk));
    let mut out = Vec::new();
    while window.waiting() > 0 {
        window.release(step, &mut out);
    }
    out
}

#[test]
fn a_window_lets_out_what_it_is_told_to_and_masks_what_is_left() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    for cut in 1..PLAIN.len() {
        let mut window = secrets.window();
        let mut out = vec![b'x'; 20_000];
        window.push(&out.clone());
        window.push(&PLAIN.as_bytes()[..cut]);
        out.clear();
        window.release(window.waiting(), &mut out);
        assert!(out.ends_with(&PLAIN.as_bytes()[..cut]), "{cut}");
        assert_eq!((out.len(), window.masked()), (20_000 + cut, 0));
        out.clear();
        window.push(format!("{} and {PLAIN}", &PLAIN[cut..]).as_bytes());
        window.release(window.waiting() - 5, &mut out);
        window.release(5, &mut out);
        assert_eq!(shown(&out), "[secret db] and [secret db]", "{cut}");
        assert_eq!((window.waiting(), window.masked()), (0, 2));
    }
    // What was found stays where it is while what is before it is forgotten.
    let text = format!("{PLAIN}{}", "x".repeat(1500)).repeat(40);
    for piece in [1, 7, 700, 9000] {
        let (mut window, mut out) = (secrets.window(), Vec::new());
        window.push(text.as_bytes());
        while window.waiting() > 0 {
            window.release(piece, &mut out);
        }
        assert_eq!(shown(&out), secrets.redact_str(&text), "{piece}");
        assert_eq!(window.masked(), 40);
    }
}

/// Only some characters are written otherwise, each in its own way.
#[test]
fn a_mixture_of_spellings_is_read() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    for text in [
        "sk%2Dlive%2dT0pS3cretV4lue_x9",
        "sk-live-T0pS3cretV4lue%5fx9",
        "&#115;k-live-&#x54;0pS3cretV4lue_x9",
        "sk&hyphen;live-T0pS3cretV4lue&lowbar;x9",
        "sk\\u002dlive\\055T0pS3cret\\x56\\u{34}lue_x9",
        "sk%26%2345%3Blive-T0pS3cretV4lue_x9",
        "SK-LIVE-T0PS3CRET%564LUE_X9",
        "sk\u{8}k-\u{8}-l\u{8}li\u{8}iv\u{8}ve-T0pS3cretV4lue_x9",
        "s_\u{8}k-liXY\u{8}\u{8}ve-T0pS3cretV4lue_x9",
        "c2stbGl2ZS1UMHBTM2NyZXRWNGx1ZV94&#79;Q==",
    ] {
        let around = format!("before {text} after");
        assert_eq!(
            secrets.redact_str(&around),
            "before [secret db] after",
            "{text}"
        );
        assert_eq!(secrets.find(text.as_bytes()), Some(&name("db")), "{text}");
        let out = streamed(&secrets, [around.as_bytes()]);
        assert_eq!(shown(&out), "before [secret db] after", "{text}");
    }
    for text in [
        "100% &c; \\d+ a%zz &#; \\",
        "sk%2Dlive%2d",
        "&#115;k",
        "a\u{8}\u{8}\u{8}b",
    ] {
        for size in [1, 100] {
            let out = streamed(&secrets, text.as_bytes().chunks(size));
            assert_eq!(shown(&out), shown(text.as_bytes()));
        }
    }
}

/// As `xxd`, `hexdump` and `od` print a file in which the value stands anywhere.
#[test]
fn dumps_of_bytes_are_read() {
    let secrets = secrets(&[("db", PLAIN.as_bytes())]);
    for before in 0..17 {
        let file = format!("{}{PLAIN}\n{}", "p".repeat(before), "q".repeat(20));
        for (tool, dump) in dumps(file.as_bytes()) {
            let text = format!("$ {tool} file\n{dump}$ exit\n");
            let whole = shown(&secrets.redact(text.as_bytes()));
            assert!(whole.contains("[secret db]"), "{tool}: {whole}");
            // No two bytes that stand together are left, nor the text beside them.
            let left = whole.replace("[secret db]", "*");
            let gone = file.as_bytes()[before..before + PLAIN.len()].windows(3);
            for three in gone {
                let text = std::str::from_utf8(three).unwrap();
                let hex: Vec<String> = three.iter().map(|it| format!("{it:02x}")).collect();
                assert!(!left.contains(text), "{tool} {before}: {text} {whole}");
                assert!(!left.contains(&hex.join(" ")), "{tool} {before}: {whole}");
            }
            assert!(whole.starts_with(&format!("$ {tool} file\\n")), "{whole}");
            assert!(whole.ends_with("$ exit\\n"), "{whole}");
            let lines = streamed(&secrets, text.as_bytes().split_inclusive(|it| *it == b'\n'));
            assert_eq!(shown(&lines), whole, "{tool}");
            for size in [50, 100, 1000] {
                let out = shown(&streamed(&secrets, text.as_bytes().chunks(size)));
                assert_eq!(out, whole, "{tool} {size}");
            }
        }
        let other = dumps(&[b'z'; 100]);
        for (tool, dump) in other {
            assert_eq!(secrets.redact(dump.as_bytes()), dump.as_bytes(), "{tool}");
        }
    }
}

fn dumps(file: &[u8]) -> Vec<(&'static str, String)> {
    let ascii = |row: &[u8]| -> String {
        let shown = |it: &u8| {
            if it.is_ascii_graphic() {
                char::from(*it)
            } else {
                '.'
            }
        };
        row.iter().map(shown).collect()
    };
    let joined = |row: &[u8], size: usize, swapped: bool| -> String {
        let group = |group: &[u8]| -> String {
            let mut group = group.to_vec();
            if swapped {
                group.resize(size, 0);
                group.reverse();
            }
            group.iter().map(|it| format!("{it:02x}")).collect()
        };
        row.chunks(size).map(group).collect::<Vec<_>>().join(" ")
    };
    let numbers =
        |row: &[u8], write: &dyn Fn(&u8) -> String| -> String { row.iter().map(write).collect() };
    let rows = |write: &dyn Fn(usize, &[u8]) -> String| -> String {
        file.chunks(16)
            .enumerate()
            .map(|(at, row)| write(16 * at, row) + "\n")
            .collect()
    };
    let letter = |it: &u8| match it {
        b'\n' => "  \\n".to_owned(),
        it => format!("   {}", char::from(*it)),
    };
    vec![
        (
            "xxd",
            rows(&|at, row| format!("{at:08x}: {:39}  {}", joined(row, 2, false), ascii(row))),
        ),
        (
            "xxd -b",
            file.chunks(6)
                .enumerate()
                .map(|(at, row)| {
                    let bits: Vec<String> = row.iter().map(|it| format!("{it:08b}")).collect();
                    format!("{:08x}: {:53}  {}\n", 6 * at, bits.join(" "), ascii(row))
                })
                .collect(),
        ),
        (
            "xxd -e",
            rows(&|at, row| {
                let cell = |it: &[u8]| {
                    let digits = it.iter().rev().map(|it| format!("{it:02x}"));
                    format!("{:>8}", digits.collect::<String>())
                };
                let cells: Vec<String> = row.chunks(4).map(cell).collect();
                format!("{at:08x}: {:35}  {}", cells.join(" "), ascii(row))
            }),
        ),
        (
            "hexdump -d",
            rows(&|at, row| {
                let word = |it: &[u8]| {
                    let high = it.get(1).copied().unwrap_or(0);
                    format!("   {:05}", u16::from_le_bytes([it[0], high]))
                };
                format!("{at:07x}{}", row.chunks(2).map(word).collect::<String>())
            }),
        ),
        (
            "xxd -g1",
            rows(&|at, row| format!("{at:08x}: {:47}  {}", joined(row, 1, false), ascii(row))),
        ),
        (
            "xxd -e",
            rows(&|at, row| format!("{at:08x}: {:35}   {}", joined(row, 4, true), ascii(row))),
        ),
        (
            "hexdump -C",
            rows(&|at, row| {
                let (one, two) = row.split_at(row.len().min(8));
                format!(
                    "{at:08x}  {:23}  {:23}  |{}|",
                    joined(one, 1, false),
                    joined(two, 1, false),
                    ascii(row)
                )
            }),
        ),
        (
            "hexdump",
            rows(&|at, row| format!("{at:07x} {}", joined(row, 2, true))),
        ),
        (
            "od -tx1",
            rows(&|at, row| format!("{at:07o} {}", joined(row, 1, false))),
        ),
        (
            "od -tx1z",
            rows(&|at, row| format!("{at:07o} {:47}  >{}<", joined(row, 1, false), ascii(row))),
        ),
        (
            "od -An -tx1",
            rows(&|_, row| format!(" {}", joined(row, 1, false))),
        ),
        (
            "od -An -tx4",
            rows(&|_, row| format!(" {}", joined(row, 4, true))),
        ),
        (
            "od",
            rows(&|at, row| {
                let word = |it: &[u8]| {
                    format!(
                        " {:06o}",
                        u16::from_le_bytes([it[0], *it.get(1).unwrap_or(&0)])
                    )
                };
                format!("{at:07o}{}", row.chunks(2).map(word).collect::<String>())
            }),
        ),
        (
            "od -b",
            rows(&|at, row| format!("{at:07o}{}", numbers(row, &|it| format!(" {it:03o}")))),
        ),
        (
            "od -tu1",
            rows(&|at, row| format!("{at:07o}{}", numbers(row, &|it| format!(" {it:3}")))),
        ),
        (
            "od -c",
            rows(&|at, row| format!("{at:07o}{}", numbers(row, &letter))),
        ),
    ]
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
        // A backspace in another piece than what it takes away is not seen, and that is said.
        1 => prop::collection::vec(any::<u8>().prop_map(|it| it.max(9)), 0..4),
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

/// Any of its characters may be written otherwise, and the cut may be anywhere.
#[test]
fn a_mixture_is_found_however_it_is_cut() {
    let value = "hunter2-hunter2";
    let secrets = Secrets::compile([("own".parse().unwrap(), value.as_bytes().to_vec())]).unwrap();
    let forms: [&dyn Fn(u8) -> String; 7] = [
        &|it| format!("%{it:02x}"),
        &|it| format!("%25{it:02x}"),
        &|it| format!("&#{it};"),
        &|it| format!("\\{it:03o}"),
        &|it| format!("\\x{it:02x}"),
        &|it| format!("\\u{it:04x}"),
        &|it| format!("q\u{8}{}", char::from(it)),
    ];
    for form in forms {
        for which in 1..=64_u32 {
            let is_written = |at: usize| match which {
                1..=14 => at == which as usize,
                _ => at > 0 && which.wrapping_mul(2_654_435_761) >> (at % 31) & 1 == 1,
            };
            let mixed = value
                .bytes()
                .enumerate()
                .map(|(at, it)| match is_written(at) {
                    true => form(it),
                    false => char::from(it).to_string(),
                });
            let text = format!("say {} done\n", mixed.collect::<String>());
            let whole = secrets.redact(text.as_bytes());
            assert_eq!(*whole, *b"say [secret own] done\n", "{text:?}");
            for size in [1, 2, 3, 5, 7, 11] {
                let (mut redactor, mut out) = (secrets.redactor(), Vec::new());
                for chunk in text.as_bytes().chunks(size) {
                    redactor.push(chunk, &mut out);
                }
                redactor.finish(&mut out);
                assert_eq!(out, *whole, "{text:?} cut after each {size} bytes");
            }
        }
    }
}
