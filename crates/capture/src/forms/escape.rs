//! Quoting: JSON, shells, Python, HTML and XML, CSV and SQL.

use super::Form;

pub(super) fn all(text: &str, forms: &mut Vec<Form>) {
    json(text, forms);
    shell(text, forms);
    python(text, forms);
    html(text, forms);
    for quote in ['"', '\''] {
        forms.push(each(text, |it, form| {
            if it == quote {
                form.chars(it);
            }
            form.chars(it);
        }));
    }
}

fn each(text: &str, mut write: impl FnMut(char, &mut Form)) -> Form {
    let mut form = Form::of(text.as_bytes());
    text.chars().for_each(|it| write(it, &mut form));
    form
}

fn escaped(form: &mut Form, character: char) {
    form.push(b'\\');
    form.chars(character);
}

/// What an encoder does beside what RFC 8259 demands.
#[derive(Debug, Clone, Copy)]
struct Json {
    /// Written as `\u00XX` though nothing demands it.
    hidden: &'static str,
    escapes_slash: bool,
    ascii_only: bool,
}

/// Go and others that think of HTML; PHP's `JSON_HEX_*`; .NET.
const HIDDEN: [&str; 4] = ["", "<>&", "<>&'\"", "<>&'\"+`"];

fn json(text: &str, forms: &mut Vec<Form>) {
    for hidden in HIDDEN {
        for (escapes_slash, ascii_only) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let style = Json {
                hidden,
                escapes_slash,
                ascii_only,
            };
            forms.push(each(text, |it, form| style.write(it, form)));
        }
    }
}

impl Json {
    fn write(self, character: char, form: &mut Form) {
        match character {
            it if self.hidden.contains(it) => units(form, it),
            '"' | '\\' => escaped(form, character),
            '\n' => form.extend(b"\\n"),
            '\r' => form.extend(b"\\r"),
            '\t' => form.extend(b"\\t"),
            '\u{8}' => form.extend(b"\\b"),
            '\u{c}' => form.extend(b"\\f"),
            '/' if self.escapes_slash => form.extend(b"\\/"),
            '\0'..='\u{1f}' => units(form, character),
            it if self.ascii_only && !it.is_ascii() => units(form, it),
            it => form.chars(it),
        }
    }
}

/// `\u00e9`, in two halves where one is not enough.
fn units(form: &mut Form, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        form.extend(b"\\u");
        let [high, low] = unit.to_be_bytes();
        form.hex(high);
        form.hex(low);
    }
}

fn shell(text: &str, forms: &mut Vec<Form>) {
    // Inside of single quotes: bash's own way, and that of Python's `shlex`.
    for quote in ["'\\''", "'\"'\"'"] {
        forms.push(each(text, |it, form| match it {
            '\'' => form.extend(quote.as_bytes()),
            it => form.chars(it),
        }));
    }
    // Inside of double quotes; with a history, `!` is special too.
    for special in ["\"\\$`", "\"\\$`!"] {
        forms.push(each(text, |it, form| match special.contains(it) {
            true => escaped(form, it),
            false => form.chars(it),
        }));
    }
    // `printf %q`: bash, and shells that know fewer special characters.
    for plain in ["-_./+:@%=,", "-_./+:@%=,~#^{}[]!", "-_./+:@%="] {
        forms.push(each(text, |it, form| {
            match it.is_ascii_alphanumeric() || !it.is_ascii() || plain.contains(it) {
                true => form.chars(it),
                false => escaped(form, it),
            }
        }));
    }
    // `$'…'`, where a locale may not know the letters.
    for ascii_only in [true, false] {
        forms.push(each(text, |it, form| match it {
            '\'' | '\\' => escaped(form, it),
            '\n' => form.extend(b"\\n"),
            '\r' => form.extend(b"\\r"),
            '\t' => form.extend(b"\\t"),
            '\u{7}' => form.extend(b"\\a"),
            '\u{8}' => form.extend(b"\\b"),
            '\u{b}' => form.extend(b"\\v"),
            '\u{c}' => form.extend(b"\\f"),
            '\u{1b}' => form.extend(b"\\E"),
            '\0'..='\u{1f}' | '\u{7f}' => octal(form, it),
            it if ascii_only && !it.is_ascii() => octal(form, it),
            it => form.chars(it),
        }));
    }
}

fn octal(form: &mut Form, character: char) {
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        form.extend(&[
            b'\\',
            b'0' + (byte >> 6),
            b'0' + (byte >> 3 & 7),
            b'0' + (byte & 7),
        ]);
    }
}

/// `repr` of a text and of bytes, in either quotes.
fn python(text: &str, forms: &mut Vec<Form>) {
    for quote in ['\'', '"'] {
        for is_bytes in [true, false] {
            forms.push(each(text, |it, form| match it {
                '\\' => escaped(form, it),
                it if it == quote => escaped(form, it),
                '\n' => form.extend(b"\\n"),
                '\r' => form.extend(b"\\r"),
                '\t' => form.extend(b"\\t"),
                it if it.is_ascii_control() || (is_bytes && !it.is_ascii()) => {
                    for byte in it.encode_utf8(&mut [0; 4]).bytes() {
                        form.extend(b"\\x");
                        form.hex(byte);
                    }
                }
                it => form.chars(it),
            }));
        }
    }
}

fn html(text: &str, forms: &mut Vec<Form>) {
    for (quote, apostrophe, slash) in [
        ("\"", "'", "/"),
        ("&quot;", "'", "/"),
        // Python, Jinja
        ("&quot;", "&#x27;", "/"),
        ("&#34;", "&#39;", "/"),
        ("&quot;", "&#39;", "/"),
        // PHP
        ("&quot;", "&#039;", "/"),
        // XML
        ("&quot;", "&apos;", "/"),
        ("&quot;", "&#x27;", "&#x2F;"),
        ("&quot;", "&#39;", "&#x2F;"),
    ] {
        forms.push(each(text, |it, form| match it {
            '&' => form.extend(b"&amp;"),
            '<' => form.extend(b"&lt;"),
            '>' => form.extend(b"&gt;"),
            '"' => form.extend(quote.as_bytes()),
            '\'' => form.extend(apostrophe.as_bytes()),
            '/' => form.extend(slash.as_bytes()),
            it => form.chars(it),
        }));
    }
}
