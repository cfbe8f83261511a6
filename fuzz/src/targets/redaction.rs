//! Secrets in streams: a value, a NUL byte, and a text. However the text is cut, the same comes out, and
//! the value is not in it.

use glovebox_capture::Secrets;
use glovebox_model::SecretName;

use super::{Target, as_it_is};

/// Beside the value that is made up.
const OTHERS: [(&str, &[u8]); 3] = [
    ("key", b"abcd1234efgh"),
    ("start", b"abcd1234"),
    ("pem", b"line-one-of-it\nline-two-of-it\nend"),
];
/// Between two bytes of a secret a text may have so many that are left out.
const STRETCH: usize = 81;

pub const TARGET: Target = Target {
    name: "redaction",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"abcd1234",
        b"efgh",
        b"1234efgh",
        b"YWJjZDEyMzRlZmdo",
        b"61626364",
        b"%61%62",
        b"\\u0061",
        b"\x1b[0m",
        b"\x1b[",
        b"\x1b",
        b"\r\n",
        b"\n  ",
        b"\\n",
        b"\\",
        b"\"",
        b"'",
        b"&amp;",
        b"[secret key]",
        b"line-one-of-it",
        b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w",
        b"\0",
    ],
};

fn run(bytes: &[u8]) -> Result<String, String> {
    let nul = bytes.iter().position(|it| *it == 0).ok_or("no value")?;
    let (value, text) = (&bytes[..nul], &bytes[nul + 1..]);
    let named = |name: &str| {
        name.parse::<SecretName>()
            .map_err(|error| error.to_string())
    };
    let mut values = vec![(named("own")?, value.to_vec())];
    for (name, value) in OTHERS {
        values.push((named(name)?, value.to_vec()));
    }
    let secrets = Secrets::compile(values).map_err(|unfit| format!("{:?}", unfit.why))?;
    let whole = secrets.redact(text);
    // Base64 of several lines is known by how long its lines are. Where one is longer than what it means,
    // with a character by its number or a backspace in it, that is seen in the whole text alone.
    let has = |bytes: &[u8]| text.iter().any(|it| bytes.contains(it));
    let is_shifted = has(b"%\\&\x08") && has(b"\r\n");
    for size in [1, 2, 7, 64, usize::from(value[0]) + 1] {
        let cut = streamed(&secrets, text.chunks(size));
        assert!(is_shifted || cut == *whole, "cut after each {size} bytes");
    }
    let value = value.trim_ascii();
    let is_in = |text: &[u8]| text.windows(value.len()).any(|it| it == value);
    if is_in(text) {
        assert!(secrets.find(text).is_some(), "not found");
        assert_ne!(*whole, *text, "not masked");
    }
    // A marker could make up the rest of a value with such a bracket at its edge.
    if !value.iter().any(|it| matches!(it, b'[' | b']')) {
        assert!(!is_in(&whole), "still there");
    }
    let markers = whole
        .windows(8)
        .filter(|it| it.starts_with(b"[secret "))
        .count();
    Ok(format!(
        "{}\n{}",
        ["no marker", "a marker", "markers"][markers.min(2)],
        secrets.find(text).map_or("none", SecretName::as_str)
    ))
}

fn streamed<'a>(secrets: &Secrets, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for chunk in chunks {
        redactor.push(chunk, &mut out);
        assert!(redactor.held() < secrets.longest() * STRETCH, "held back");
    }
    redactor.finish(&mut out);
    assert_eq!(redactor.held(), 0, "kept");
    out
}

fn seeds() -> Vec<Vec<u8>> {
    [
        &b"p\"a'ss\\wo/rd\0{\"x\": \"p\\\"a'ss\\\\wo/rd\"} abcd1234efgh"[..],
        b"hunter2-hunter2\0+ curl hunter2-\x1b[0mhunter2 hunter2\\-hunter2\n",
        b"us\npa-ss-wo\0us\r\npa-ss-wo\nus\npa-ss-wo line-one-of-it\r\n  line-two-of-it\nend",
        b"bin\x1b[0m\x1b(bin\0bin\x1b[0m\x1b(bin \xff\xfeabcd1234\xff",
        b"sk-live-T0pS3cret\0QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wYWJj\nZDEyMzRlZmdo\n",
    ]
    .iter()
    .map(|it| it.to_vec())
    .collect()
}
