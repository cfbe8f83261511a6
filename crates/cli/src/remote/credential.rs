//! The token that is shown to a server. It comes from the environment or from a file, never from
//! the command line, which everybody on the machine can read.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use hyper::header::HeaderValue;

use super::address::Address;
use super::neighbour;

const VARIABLE: &str = "GLOVEBOX_TOKEN";
/// Made by a server for whoever started it.
const OWN_FILE: &str = "token";
const LONGEST: u64 = 4096;

/// `Authorization`, never shown.
#[derive(Clone)]
pub(crate) struct Credential(HeaderValue);

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

impl Credential {
    /// What was given, or the token of our own server. `None`: the server will say what it thinks.
    pub(crate) fn find(
        address: &Address,
        file: Option<&Path>,
        state: Option<&Path>,
    ) -> Result<Option<Self>> {
        let variable = std::env::var_os(VARIABLE).filter(|it| !it.is_empty());
        Self::choose(address, file, variable, state)
    }

    fn choose(
        address: &Address,
        file: Option<&Path>,
        variable: Option<OsString>,
        state: Option<&Path>,
    ) -> Result<Option<Self>> {
        match (file, variable) {
            (Some(file), _) => Self::read(file).map(Some),
            (None, Some(token)) => Self::of_variable(token).map(Some),
            (None, None) => Ok(state
                .map(|directory| directory.join(OWN_FILE))
                .filter(|file| file.exists() && address.is_local() && neighbour::is_ours(address))
                .and_then(|file| Self::read(&file).ok())),
        }
    }

    fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let failed = |error: std::io::Error| {
            invalid(format!("cannot read the token file `{shown}`")).caused_by(error)
        };
        let mut text = String::new();
        let opened = std::fs::File::open(file).map_err(failed)?;
        opened
            .take(LONGEST)
            .read_to_string(&mut text)
            .map_err(failed)?;
        Self::new(text.trim()).ok_or_else(|| {
            invalid(format!("`{shown}` does not hold a token"))
                .hint("a token is one word: `gb_` and hexadecimal digits")
        })
    }

    fn of_variable(token: OsString) -> Result<Self> {
        let token = token.into_string().ok();
        token.and_then(|it| Self::new(it.trim())).ok_or_else(|| {
            invalid(format!("`{VARIABLE}` does not hold a token"))
                .hint("a token is one word: `gb_` and hexadecimal digits")
        })
    }

    fn new(token: &str) -> Option<Self> {
        let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then_some(())?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_never_shown() {
        let token = Credential::new("gb_12_ab").unwrap();
        assert!(!format!("{token:?} {:?}", token.header()).contains("gb_12"));
        for wrong in ["", "two words", "line\nbreak", "zażółć"] {
            assert!(Credential::new(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_may_end_with_a_newline_and_a_wrong_one_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("token");
        std::fs::write(&file, "gb_1_2\n").unwrap();
        assert!(Credential::read(&file).is_ok());
        std::fs::write(&file, "two words\n").unwrap();
        let error = Credential::read(&file).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(!error.message.contains("words"), "{error}");
    }

    #[test]
    fn the_token_of_our_own_server_goes_to_nobody_else() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("token"), "gb_1_2\n").unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let find = |address: &str| {
            let address = address.parse().unwrap();
            Credential::choose(&address, None, None, Some(place.path())).unwrap()
        };
        assert!(find(&format!("http://127.0.0.1:{port}")).is_some());
        assert!(find("http://192.0.2.1:7070").is_none());
        // Nothing listens on port 1.
        assert!(find("http://127.0.0.1:1").is_none());
    }
}
