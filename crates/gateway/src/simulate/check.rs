//! How a simulation that cannot be played is refused.

use glovebox_model::{Code, Error, Result, Stage};

pub(crate) fn refuse(why: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, why)
}

/// What a caller wrote, short and in one line.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

pub(crate) fn at_most(what: &str, count: usize, most: usize) -> Result<()> {
    if count > most {
        let why = format!("a simulation has {count} `{what}`; at most are {most}");
        return Err(refuse(why).hint("`*` in a host and globs in a path stand for many"));
    }
    Ok(())
}

/// Says which one it was.
pub(crate) fn numbered<A, B>(
    what: &str,
    all: &[A],
    check: impl Fn(&A) -> Result<B>,
) -> Result<Vec<B>> {
    let named = |(number, one)| {
        check(one).map_err(|error| Error {
            message: format!("`{what}[{number}]`: {}", error.message),
            ..error
        })
    };
    all.iter().enumerate().map(named).collect()
}
