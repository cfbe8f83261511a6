//! The crate by its interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod corpus;
mod live;
mod spelling;
mod stream;
mod vocabulary;

use glovebox_capture::Secrets;
use glovebox_model::SecretName;

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

fn secrets(values: &[(&str, &[u8])]) -> Secrets {
    Secrets::compile(
        values
            .iter()
            .map(|(label, value)| (name(label), value.to_vec())),
    )
    .unwrap()
}

/// One stream in these chunks.
fn streamed<'a>(secrets: &Secrets, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for chunk in chunks {
        redactor.push(chunk, &mut out);
    }
    redactor.finish(&mut out);
    assert_eq!(redactor.held(), 0);
    out
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn shown(text: &[u8]) -> String {
    text.escape_ascii().to_string()
}
