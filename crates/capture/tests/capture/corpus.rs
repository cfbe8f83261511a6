//! Every row of the corpus of redaction that is about the redactor itself.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_capture::{Secrets, Why};
use serde_json::Value;

use crate::spelling::{AWKWARD, forms, wrapped};
use crate::{holds, name, secrets, shown, streamed};

/// About a whole sandbox or server: the tests of `tests/network` that hold them, `module::test`.
const END_TO_END: [(&str, &[&str]); 7] = [
    // File names: artifacts, and what waits in a layer or lies in a workspace, as they are listed.
    (
        "X028",
        &[
            "canary::a_file_is_never_seen",
            "canary::names_in_a_workspace_are_masked",
        ],
    ),
    // Arguments, in the record and in every listing.
    ("X030", EVERY_DELIVERY),
    // Errors, in answers and in the log.
    ("X031", EVERY_DELIVERY),
    // The ledger, its export, and the database itself.
    (
        "X033",
        &[
            "canary::a_file_is_never_seen",
            "canary::nothing_is_seen_in_postgresql",
        ],
    ),
    // Metrics, and the log at its most talkative.
    ("X034", EVERY_DELIVERY),
    // A snapshot and its copy, and what an engine shows of a container.
    (
        "X038",
        &[
            "canary::a_variable_is_never_seen",
            "containers::no_secret_stands_in_a_containers_configuration",
        ],
    ),
    // Cores, and the environment and arguments of our own processes.
    (
        "X039",
        &[
            "processes::no_process_of_ours_shows_a_secret",
            "processes::no_core_is_written",
        ],
    ),
];
const EVERY_DELIVERY: &[&str] = &[
    "canary::a_file_is_never_seen",
    "canary::a_descriptor_is_never_seen",
    "canary::a_variable_is_never_seen",
    "canary::a_brokered_one_is_never_seen",
];

const ROWS: [(&str, fn()); 25] = [
    ("X001", whole_and_in_any_stream),
    ("X002", whole_and_in_any_stream),
    ("X003", cut_at_every_byte),
    ("X004", cut_at_every_byte),
    ("X005", across_the_edge_of_a_buffer),
    ("X007", half_here_and_half_there),
    ("X008", base64),
    ("X009", base64),
    ("X012", base64_in_lines),
    ("X013", awkward_forms),
    ("X015", awkward_forms),
    ("X017", awkward_forms),
    ("X018", traced_by_a_shell),
    ("X021", not_promised),
    ("X022", of_several_lines),
    ("X024", too_short),
    ("X025", common_words),
    ("X026", one_the_beginning_of_another),
    ("X029", dumped_environment),
    ("X035", found_in_a_file),
    ("X041", rotated),
    ("X043", among_bytes_that_are_no_text),
    ("X044", coloured),
    ("X046", a_thousand_secrets),
    ("X048", text_without_secrets),
];

const VALUE: &str = "sk-live-T0pS3cretV4lue_x9";

fn one() -> Secrets {
    secrets(&[("db", VALUE.as_bytes())])
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|it| it == "true")
}

/// Not every copy of the repository has it; where everything has to be tested, that is a failure.
fn beside_the_repository(path: &str) -> std::path::PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(3).unwrap_or(own).join(path)
}

fn corpus() -> Option<Vec<String>> {
    let path = beside_the_repository("shared/corpora/redaction.jsonl");
    let text = std::fs::read_to_string(path).ok()?;
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().unwrap().to_owned()
    };
    Some(text.lines().map(id).collect())
}

#[test]
fn every_row_of_the_corpus_has_its_test() {
    let Some(rows) = corpus() else {
        assert!(!is_ci(), "no corpus beside the repository");
        return println!("no corpus beside the repository; our own rows stand alone");
    };
    let outside = END_TO_END.iter().map(|(id, _)| *id);
    let known: BTreeSet<&str> = ROWS.iter().map(|(id, _)| *id).chain(outside).collect();
    let rows: BTreeSet<&str> = rows.iter().map(String::as_str).collect();
    let without: Vec<_> = rows.difference(&known).collect();
    assert!(without.is_empty(), "rows without a test: {without:?}");
    assert!(rows.len() >= 32, "only {} rows", rows.len());
}

#[test]
fn rows_about_the_whole_product_name_tests_that_exist() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = own.ancestors().nth(2).unwrap().join("tests/network");
    for (id, held_by) in END_TO_END {
        for test in held_by {
            let (module, name) = test.split_once("::").unwrap();
            let text = std::fs::read_to_string(tests.join(format!("{module}.rs"))).unwrap();
            let function = format!("#[test]\nfn {name}() {{");
            assert!(text.contains(&function), "{id}: there is no `{test}`");
        }
    }
}

#[test]
fn rows_of_the_corpus_hold() {
    for (id, row) in ROWS {
        println!("{id}");
        row();
    }
}

fn whole_and_in_any_stream() {
    let text = format!("token is {VALUE}\n");
    let out = streamed(&one(), [text.as_bytes()]);
    assert_eq!(shown(&out), "token is [secret db]\\n");
}

fn cut_at_every_byte() {
    let secrets = one();
    for cut in 0..=VALUE.len() {
        let (head, tail) = VALUE.as_bytes().split_at(cut);
        assert_eq!(
            shown(&streamed(&secrets, [head, tail])),
            "[secret db]",
            "{cut}"
        );
    }
    let bytes = streamed(&secrets, VALUE.as_bytes().chunks(1));
    assert_eq!(shown(&bytes), "[secret db]");
}

fn across_the_edge_of_a_buffer() {
    let secrets = one();
    for size in [4096, 8192, 65536] {
        for before in size - VALUE.len() - 1..=size + VALUE.len() + 1 {
            let padding = "x.".repeat(before).into_bytes();
            let text = [&padding[..before], VALUE.as_bytes(), b"tail"].concat();
            let out = streamed(&secrets, text.chunks(size));
            assert_eq!(out[..before], padding[..before]);
            assert_eq!(shown(&out[before..]), "[secret db]tail", "{size} {before}");
        }
    }
}

/// Out of scope, and said so: one stream knows nothing of the other. Merged, it is found.
fn half_here_and_half_there() {
    let secrets = one();
    let (head, tail) = VALUE.as_bytes().split_at(8);
    assert_eq!(streamed(&secrets, [head]), head);
    assert_eq!(streamed(&secrets, [tail]), tail);
    assert_eq!(shown(&streamed(&secrets, [head, tail])), "[secret db]");
}

/// Of what is encoded together with the secret, at most the character that they share stays.
fn base64() {
    for value in [VALUE, "abcd1234", "abcd12345", "abcd123456", AWKWARD] {
        let secrets = secrets(&[("db", value.as_bytes())]);
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "z", "zz", "zzz", "\n", "@host"] {
                let encoded = STANDARD.encode(format!("{before}{value}{after}"));
                for spelled in [encoded.replace(['+', '/'], "~"), encoded.clone()] {
                    let is_url = spelled != encoded;
                    let spelled = match is_url {
                        true => encoded.replace('+', "-").replace('/', "_"),
                        false => spelled,
                    };
                    let out = shown(&secrets.redact(spelled.as_bytes()));
                    let (left, right) = out.split_once("[secret db]").expect(&out);
                    let known = |text: &str| text.len() * 8 / 6;
                    assert!(left.len() <= known(before) + 1, "{before} {after}: {out}");
                    let around = (after.len() * 8).div_ceil(6) + 1 + 2;
                    assert!(right.len() <= around, "{before} {after}: {out}");
                    if before.len() % 3 == 0 && matches!(after, "" | "\n") {
                        assert_eq!(right, "", "{out}");
                    }
                }
            }
        }
    }
}

fn base64_in_lines() {
    let secrets = one();
    for before in 0..120 {
        for columns in [60, 64, 76] {
            for line_break in ["\n", "\r\n", "\n  ", "\\n"] {
                let whole = format!("{}{VALUE}{}", "p".repeat(before), "s".repeat(90));
                let encoded = STANDARD.encode(whole);
                let text = wrapped(&encoded, columns, line_break);
                let out = streamed(&secrets, text.as_bytes().chunks(5));
                let out = String::from_utf8(out).unwrap();
                assert!(
                    out.contains("[secret db]"),
                    "{before} {columns}: {text} {out}"
                );
                // The characters that only the secret decides are gone, wherever they were.
                let begin = (before * 8).div_ceil(6);
                let end = (before + VALUE.len()) * 8 / 6;
                let left = out.replace(line_break, "").replace(' ', "");
                let expected = format!("{}[secretdb]{}", &encoded[..begin], &encoded[end..]);
                assert_eq!(left, expected, "{before} {columns}");
            }
        }
    }
}

fn awkward_forms() {
    for value in [VALUE, AWKWARD] {
        let secrets = secrets(&[("db", value.as_bytes())]);
        for (form, spelled) in forms(value) {
            let out = secrets.redact(&spelled);
            assert_eq!(shown(&out), "[secret db]", "{form}: {}", shown(&spelled));
        }
    }
}

fn traced_by_a_shell() {
    let value = "it's a $ecret \"key\"";
    let secrets = secrets(&[("db", value.as_bytes())]);
    for said in [
        "+ curl -H 'Authorization: Bearer it'\\''s a $ecret \"key\"' http://x",
        "+ TOKEN=$'it\\'s a $ecret \"key\"'",
        "declare -x TOKEN=\"it's a \\$ecret \\\"key\\\"\"",
        "TOKEN=it\\'s\\ a\\ \\$ecret\\ \\\"key\\\"",
        "['curl', 'it\\'s a $ecret \"key\"']",
    ] {
        let out = secrets.redact_str(said);
        assert!(
            out.contains("[secret db]") && !out.contains("ecret \"k"),
            "{out}"
        );
        assert!(!out.contains("key"), "{out}");
    }
}

/// The control of what the documentation says: this is no wall against whoever wants to hide it.
fn not_promised() {
    let secrets = one();
    let spaced: Vec<String> = VALUE.chars().map(|it| it.to_string()).collect();
    let spaced = spaced.join(" ");
    assert_eq!(secrets.redact_str(&spaced), spaced);
    let reversed: String = VALUE.chars().rev().collect();
    assert_eq!(secrets.redact_str(&reversed), "[secret db]");
}

fn of_several_lines() {
    let body: Vec<String> = (0..12u8)
        .map(|line| STANDARD.encode([line.wrapping_mul(37) ^ 0x5a, line, 7, 99].repeat(12)))
        .collect();
    let body = format!("{}\nAb3=", body.join("\n"));
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    let secrets = secrets(&[("tls", pem.as_bytes())]);
    let indented = pem.trim_end().replace('\n', "\n    ");
    let crlf = pem.trim_end().replace('\n', "\r\n");
    let json = serde_json::to_string(pem.trim_end())
        .unwrap()
        .replace('"', "");
    for text in [pem.trim_end().to_owned(), indented, crlf, json] {
        for size in [1, 7, 4096] {
            let text = format!("key:\n{text}\nend");
            let out = streamed(&secrets, text.as_bytes().chunks(size));
            assert_eq!(shown(&out), "key:\\n[secret tls]\\nend", "{text}");
        }
    }
    for line in body.lines().filter(|line| line.len() >= 8) {
        let out = secrets.redact_str(line);
        assert_eq!(out, "[secret tls]", "{line}");
    }
    // What every key has is nobody's secret.
    let public = "-----BEGIN PRIVATE KEY-----\nzzzz\n-----END PRIVATE KEY-----\n";
    assert_eq!(secrets.redact_str(public), public);
}

fn refusal(value: &str) -> Why {
    let refused = Secrets::compile([(name("db"), value.as_bytes().to_vec())]).unwrap_err();
    let said = glovebox_model::Error::from(refused.clone()).to_string();
    assert!(said.contains("`db`"), "{said}");
    assert!(value.len() < 3 || !said.contains(value), "{said}");
    refused.why
}

fn too_short() {
    for value in ["", "a", "ab", "abc", "1234567", "  ab12\n  "] {
        assert_eq!(refusal(value), Why::TooShort, "{value}");
    }
}

fn common_words() {
    for (value, why) in [
        ("true", Why::TooShort),
        ("***", Why::TooShort),
        ("/", Why::TooShort),
        ("********", Why::Monotonous),
        ("abcdefgh", Why::Monotonous),
        ("password", Why::Common),
        ("[secret]", Why::LikeMarker),
        ("[secret db]", Why::LikeMarker),
    ] {
        assert_eq!(refusal(value), why, "{value}");
    }
}

fn one_the_beginning_of_another() {
    let secrets = secrets(&[("short", b"abcd1234"), ("long", b"abcd1234efgh")]);
    for text in ["abcd1234efgh", "abcd1234", "abcd1234efg"] {
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            let out = shown(&streamed(&secrets, [head, tail]));
            let expected = match text {
                "abcd1234efgh" => "[secret long]",
                "abcd1234" => "[secret short]",
                _ => "[secret short]efg",
            };
            assert_eq!(out, expected, "{cut}");
        }
    }
}

fn dumped_environment() {
    let text = format!("HOME=/root\0TOKEN={VALUE}\0PATH=/bin\0");
    let out = one().redact(text.as_bytes()).into_owned();
    assert_eq!(out, b"HOME=/root\0TOKEN=[secret db]\0PATH=/bin\0");
    let text = format!("declare -x TOKEN=\"{VALUE}\"\nexport TOKEN='{VALUE}'\n");
    let out = one().redact_str(&text).into_owned();
    assert_eq!(
        out,
        "declare -x TOKEN=\"[secret db]\"\nexport TOKEN='[secret db]'\n"
    );
}

fn found_in_a_file() {
    let secrets = one();
    let text = format!("a file\n{}\n", STANDARD.encode(format!("x{VALUE}")));
    assert_eq!(secrets.find(text.as_bytes()), Some(&name("db")));
    assert_eq!(secrets.find(b"a file\n"), None);
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for chunk in text.as_bytes().chunks(3) {
        redactor.push(chunk, &mut out);
        out.clear();
    }
    assert_eq!(
        (redactor.found(), redactor.masked()),
        (Some(&name("db")), 1)
    );
}

fn rotated() {
    let secrets = secrets(&[("db", b"first-value-1"), ("db", b"second-value-2")]);
    assert_eq!(
        secrets.redact_str("first-value-1 second-value-2"),
        "[secret db] [secret db]"
    );
    assert_eq!(secrets.names(), [name("db")]);
}

fn among_bytes_that_are_no_text() {
    let text = [b"\xff\x00\xc3", VALUE.as_bytes(), b"\xfe\x80\x1b\x00"].concat();
    let out = streamed(&one(), text.chunks(1));
    assert_eq!(out, b"\xff\x00\xc3[secret db]\xfe\x80\x1b\x00");
}

fn coloured() {
    let (head, tail) = VALUE.split_at(4);
    let text = format!("\x1b[1m{head}\x1b[0m{tail}\x1b[0m\n");
    assert_eq!(one().redact_str(&text), "\x1b[1m[secret db]\x1b[0m\n");
}

/// Its speed is measured by the example `redaction_speed`; here what it holds back.
fn a_thousand_secrets() {
    let value = |number: usize| {
        format!(
            "sk-live-{:x}",
            0x9e37_79b9_7f4a_7c15u64.wrapping_mul(number as u64 + 1)
        )
    };
    let values = (0..1000).map(|it| (name(&format!("s{it}")), value(it).into_bytes()));
    let secrets = Secrets::compile(values).unwrap();
    let mut redactor = secrets.redactor();
    let line = format!("{} a line of a log that says nothing\n", value(999));
    let mut out = Vec::new();
    for _ in 0..2000 {
        out.clear();
        redactor.push(line.as_bytes(), &mut out);
        assert_eq!(
            shown(&out),
            "[secret s999] a line of a log that says nothing\\n"
        );
        assert!(redactor.held() < secrets.longest());
    }
    assert_eq!(redactor.masked(), 2000);
    assert!((0..1000).all(|it| secrets.redact_str(&value(it)) == format!("[secret s{it}]")));
}

fn text_without_secrets() {
    let secrets = secrets(&[("db", VALUE.as_bytes()), ("awkward", AWKWARD.as_bytes())]);
    let own = include_bytes!("corpus.rs");
    // Without the line that says the value.
    let text: Vec<&[u8]> = own
        .split_inclusive(|it| *it == b'\n')
        .filter(|line| !holds(line, VALUE.as_bytes()))
        .collect();
    let text = text.concat();
    let binary: Vec<u8> = (0..100_000u32)
        .flat_map(|it| it.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let base64 = wrapped(&STANDARD.encode(&binary), 76, "\n").into_bytes();
    let near = VALUE.as_bytes()[..VALUE.len() - 1].repeat(100);
    let colours = b"\x1b[01;31m\x1b[Kword\x1b[m\x1b[K ".repeat(1000);
    for text in [text, binary, base64, near, colours] {
        assert!(matches!(
            secrets.redact(&text),
            std::borrow::Cow::Borrowed(_)
        ));
        assert!(streamed(&secrets, text.chunks(1000)) == text);
        assert_eq!(secrets.find(&text), None);
    }
}
