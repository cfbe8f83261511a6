//! The forms of a value, made without the crate under test.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    let digits: Vec<String> = bytes.iter().map(|it| format!("{it:02x}")).collect();
    digits.join(between)
}

pub(crate) fn percent(text: &str, kept: &str) -> String {
    let spelled = text.bytes().map(|byte| match byte {
        it if it.is_ascii_alphanumeric() || kept.as_bytes().contains(&it) => {
            char::from(it).to_string()
        }
        it => format!("%{it:02X}"),
    });
    spelled.collect()
}

pub(crate) fn wrapped(text: &str, columns: usize, line_break: &str) -> String {
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(columns)
        .map(|it| std::str::from_utf8(it).unwrap())
        .collect();
    lines.join(line_break)
}

pub(crate) fn ascii_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    let spelled = quoted.chars().map(|it| match it {
        it if it.is_ascii() => it.to_string(),
        it => it
            .encode_utf16(&mut [0; 2])
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect(),
    });
    let spelled: String = spelled.collect();
    spelled[1..spelled.len() - 1].to_owned()
}

pub(crate) fn base32(bytes: &[u8], padding: &str) -> String {
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        .collect();
    let letter = |bits: &[u8]| {
        let value = (0..5).fold(0, |sum, at| {
            sum << 1 | usize::from(*bits.get(at).unwrap_or(&0))
        });
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[value])
    };
    let mut text: String = bits.chunks(5).map(letter).collect();
    while !padding.is_empty() && !text.len().is_multiple_of(8) {
        text.push_str(padding);
    }
    text
}

/// A value with something for every encoder to quote.
pub(crate) const AWKWARD: &str = "p\"a'ss\\wo/rd <&> $x `y` + é𝄞 %41=!";

/// What of it must be masked, by the name of its form.
pub(crate) fn forms(value: &str) -> Vec<(String, Vec<u8>)> {
    let mut forms: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, form: String| forms.push((name.to_owned(), form.into_bytes()));
    add("raw", value.to_owned());
    add("base64 padded", STANDARD.encode(value));
    add("base64", STANDARD_NO_PAD.encode(value));
    add("base64 url padded", URL_SAFE.encode(value));
    add("base64 url", URL_SAFE_NO_PAD.encode(value));
    add(
        "base64 with a line break",
        STANDARD.encode(format!("{value}\n")),
    );
    add("base64 in a URL", percent(&STANDARD.encode(value), ""));
    add(
        "base64 in PHP's JSON",
        STANDARD.encode(value).replace('/', "\\/"),
    );
    for between in ["", ":", " ", "-"] {
        add("hex", hex(value.as_bytes(), between));
        add("HEX", hex(value.as_bytes(), between).to_uppercase());
    }
    add("\\x", format!("\\x{}", hex(value.as_bytes(), "\\x")));
    for kept in ["-_.~", "-_.~/", "-_.!~*'()", "*-._", "-_."] {
        let upper = percent(value, kept);
        let spaces = upper.replace("%20", "+");
        add("percent", upper.clone());
        add("form", spaces);
        let lower: Vec<String> = upper
            .split('%')
            .enumerate()
            .map(|(at, part)| match at {
                0 => part.to_owned(),
                _ => format!("{}{}", part[..2].to_lowercase(), &part[2..]),
            })
            .collect();
        add("percent, lower", lower.join("%"));
    }
    let every: String = value.bytes().map(|it| format!("%{it:02X}")).collect();
    add("percent, all", every);
    let json = serde_json::to_string(value).unwrap();
    let json = json[1..json.len() - 1].to_owned();
    add("json", json.clone());
    add("json, slash", json.replace('/', "\\/"));
    add("json, ascii", ascii_json(value));
    add(
        "json, go",
        json.replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
    );
    let every: String = value
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    add("json, all", every.clone());
    add("JSON, all", every.to_uppercase().replace("\\U", "\\u"));
    add("single quotes", value.replace('\'', "'\\''"));
    add("shlex", value.replace('\'', "'\"'\"'"));
    let double = value.replace('\\', "\\\\").replace('"', "\\\"");
    add(
        "double quotes",
        double.replace('$', "\\$").replace('`', "\\`"),
    );
    let special = "\"'\\<&> $`!";
    let backslashes = value.chars().map(|it| match special.contains(it) {
        true => format!("\\{it}"),
        false => it.to_string(),
    });
    add("printf %q", backslashes.collect());
    let dollar = value.replace('\\', "\\\\").replace('\'', "\\'");
    add("$'…'", dollar.clone());
    let octal = dollar.bytes().map(|it| match it.is_ascii() {
        true => char::from(it).to_string(),
        false => format!("\\{it:03o}"),
    });
    add("$'…', ascii", octal.collect());
    let html = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    add("html", html.clone());
    add(
        "html, python",
        html.replace('"', "&quot;").replace('\'', "&#x27;"),
    );
    add(
        "html, go",
        html.replace('"', "&#34;").replace('\'', "&#39;"),
    );
    add("capitals", value.to_uppercase());
    add("small letters", value.to_lowercase());
    let each = |write: &dyn Fn(u32) -> String| -> String {
        value.chars().map(|it| write(it.into())).collect()
    };
    add("entities", each(&|it| format!("&#{it};")));
    add("entities without an end", each(&|it| format!("&#{it}")));
    add("padded entities", each(&|it| format!("&#{it:07};")));
    add("hexadecimal entities", each(&|it| format!("&#x{it:X};")));
    add("encoded entities", each(&|it| format!("&amp;#{it};")));
    add("\\u{…}", each(&|it| format!("\\u{{{it:x}}}")));
    add("\\U", each(&|it| format!("\\U{it:08x}")));
    let bytes =
        |write: &dyn Fn(u8) -> String| -> Vec<String> { value.bytes().map(write).collect() };
    add("octal", bytes(&|it| format!("\\{it:03o}")).concat());
    add("echo -e", bytes(&|it| format!("\\0{it:03o}")).concat());
    add(
        "percent, twice",
        bytes(&|it| format!("%25{it:02X}")).concat(),
    );
    add(
        "percent, three times",
        bytes(&|it| format!("%2525{it:02x}")).concat(),
    );
    add(
        "quoted-printable",
        bytes(&|it| format!("={it:02X}")).concat(),
    );
    add("decimal list", bytes(&|it| it.to_string()).join(", "));
    add("decimal", bytes(&|it| it.to_string()).join(" "));
    add("od -b", bytes(&|it| format!("{it:03o}")).join(" "));
    add("xxd -b", bytes(&|it| format!("{it:08b}")).join(" "));
    add("C array", bytes(&|it| format!("0x{it:02x}")).join(", "));
    let decimals = bytes(&|it| it.to_string());
    for between in [
        ";",
        "; ",
        "|",
        " | ",
        ",\n",
        ",\n  ",
        ",\n    ",
        ",\n\t",
        ",\n            ",
        "\n- ",
        "\n  - ",
    ] {
        add("decimal list, further", decimals.join(between));
    }
    // As `pprint`, `xxd -i` and others break long lists.
    let lines = |all: &[String], count: usize, indent: &str| -> String {
        let lines: Vec<String> = all.chunks(count).map(|it| it.join(", ")).collect();
        lines.join(&format!(",\n{indent}"))
    };
    add("decimal list in lines", lines(&decimals, 7, " "));
    add("decimal list in lines", lines(&decimals, 4, "\t\t"));
    let hexes = bytes(&|it| format!("0x{it:02x}"));
    for count in [1, 2, 8, 12] {
        add("C array in lines", lines(&hexes, count, "  "));
        add("C array in lines", lines(&hexes, count, "        "));
    }
    let rest = bytes(&|it| format!("{it:3}"));
    add("numpy", rest.join(" ").trim_start().to_owned());
    add("hexadecimal, one in a line", hex(value.as_bytes(), "\n"));
    for (before, size) in [(0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4)] {
        let digits = bytes(&|it| format!("{it:02x}"));
        let grouped = digits.iter().enumerate().map(|(at, it)| {
            let is_first = at > 0 && (at + before) % size == 0;
            format!("{}{it}", if is_first { " " } else { "" })
        });
        add("groups", grouped.collect());
    }
    add("base32", base32(value.as_bytes(), "=").to_lowercase());
    add("base32 without an end", base32(value.as_bytes(), ""));
    add("csv", value.replace('"', "\"\""));
    add("sql", value.replace('\'', "''"));
    add("reversed", value.chars().rev().collect());
    if value.is_ascii() {
        for columns in [4, 5, 6, 8, 12, 40] {
            add("folded", wrapped(value, columns, "\n"));
            add(
                "hex, folded",
                wrapped(&hex(value.as_bytes(), ""), columns, "\n"),
            );
            add("folded", wrapped(value, columns, "\r\n"));
            add(
                "base64, folded",
                wrapped(&STANDARD.encode(value), columns, "\n"),
            );
        }
    }
    let little = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big = value.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let reversed = value.bytes().rev().collect();
    let wide = value.chars().flat_map(|it| u32::from(it).to_be_bytes());
    forms.extend([
        ("utf-32be".to_owned(), wide.collect()),
        ("utf-16le".to_owned(), little),
        ("utf-16be".to_owned(), big),
        ("reversed bytes".to_owned(), reversed),
    ]);
    forms
}
