//! The token that is shown to a server. It comes from the environment or from a file, never from
//! the command line, which everybody on the machine can read.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use hyper::header::HeaderValue;

use super::address::Address;
use super::local_server;

const VARIABLE: &str = "GLOVEBOX_TOKEN";
/// Made by a server for whoever started it.
const OWN_FILE: &str = "token";
const LONGEST: u64 = 4096;

/// What is shown to a server, and what to say should it not be enough.
#[derive(Clone)]
pub struct Credential {
    /// `Authorization`, never shown to a person.
    header: Option<HeaderValue>,
    /// Where the token came from, or why there is none.
    origin: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

impl Credential {
    /// What was given, or the token of our own server. Without one, the server will say what it
    /// thinks.
    pub fn find(address: &Address, file: Option<&Path>, state: Option<&Path>) -> Result<Self> {
        Self::choose(address, file, std::env::var_os(VARIABLE), state)
    }

    /// An empty variable is a secret that somebody forgot to set. It must not make its user the
    /// administrator that the state directory has the token of.
    fn choose(
        address: &Address,
        file: Option<&Path>,
        variable: Option<OsString>,
        state: Option<&Path>,
    ) -> Result<Self> {
        match (file, variable) {
            (Some(file), _) => Self::read(file),
            (None, Some(token)) => Self::of_variable(token),
            (None, None) => Ok(Self::of_state(address, state)),
        }
    }

    pub(crate) fn none(why: impl Into<String>) -> Self {
        Self {
            header: None,
            origin: why.into(),
        }
    }

    /// The token of a state directory goes to nobody but the server that made it.
    fn of_state(address: &Address, state: Option<&Path>) -> Self {
        let Some(file) = state.map(|directory| directory.join(OWN_FILE)) else {
            return Self::none("no token was sent: there is no state directory to look into");
        };
        let shown = file.display();
        if !address.is_local() {
            return Self::none(format!("`{shown}` was not sent to another machine"));
        }
        match file.try_exists() {
            Ok(true) => {}
            Ok(false) => return Self::none(format!("no token was sent: there is no `{shown}`")),
            Err(error) => return Self::none(format!("`{shown}` was not sent: {error}")),
        }
        if !local_server::is_ours(address) {
            return Self::none(format!(
                "`{shown}` was not sent: another user's process listens there"
            ));
        }
        match Self::read(&file) {
            Ok(credential) => credential,
            Err(error) => Self::none(format!("`{shown}` was not sent: {error}")),
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
        let origin = format!("the token that was sent is that of `{shown}`");
        Self::new(text.trim(), origin).ok_or_else(|| {
            invalid(format!("`{shown}` does not hold a token"))
                .hint("a token is one word: `gb_` and hexadecimal digits")
        })
    }

    fn of_variable(token: OsString) -> Result<Self> {
        if token.is_empty() {
            return Err(invalid(format!("`{VARIABLE}` is empty")).hint(
                "set it to a token; or unset it, and the token of the state directory is used",
            ));
        }
        let token = token.into_string().ok();
        let origin = format!("the token that was sent is that of `{VARIABLE}`");
        let credential = token.and_then(|it| Self::new(it.trim(), origin));
        credential.ok_or_else(|| {
            invalid(format!("`{VARIABLE}` does not hold a token"))
                .hint("a token is one word: `gb_` and hexadecimal digits")
        })
    }

    fn new(token: &str, origin: String) -> Option<Self> {
        let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then_some(())?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self {
            header: Some(value),
            origin,
        })
    }

    pub(crate) fn header(&self) -> Option<&HeaderValue> {
        self.header.as_ref()
    }

    pub fn is_some(&self) -> bool {
        self.header.is_some()
    }

    /// What a server says to somebody it does not know is for who writes requests by hand.
    pub(crate) fn explain(&self, mut error: Error) -> Error {
        if error.code == Code::Unauthenticated {
            error.hints = vec![
                self.origin.clone(),
                format!("give a token with `{VARIABLE}` or `--token-file FILE`"),
                "a server keeps its first token in the file `token` of its `--state-dir`"
                    .to_owned(),
            ];
        }
        error
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
        let token = Credential::new("gb_12_ab", String::new()).unwrap();
        assert!(!format!("{token:?} {:?}", token.header()).contains("gb_12"));
        for wrong in ["", "two words", "line\nbreak", "zażółć"] {
            assert!(Credential::new(wrong, String::new()).is_none(), "{wrong:?}");
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
    fn an_empty_variable_makes_nobody_an_administrator() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("token"), "gb_1_2\n").unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let address = address.parse().unwrap();
        for empty in ["", " \n"] {
            let choice = Credential::choose(&address, None, Some(empty.into()), Some(place.path()));
            let error = choice.unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{empty:?}");
            assert!(error.message.contains("GLOVEBOX_TOKEN"), "{error}");
        }
    }

    #[test]
    fn the_token_of_our_own_server_goes_to_nobody_else() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("token");
        std::fs::write(&file, "gb_1_2\n").unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = format!("http://{}", listener.local_addr().unwrap());
        let find = |address: &str| {
            let address = address.parse().unwrap();
            Credential::choose(&address, None, None, Some(place.path())).unwrap()
        };
        assert!(find(&own).is_some());
        let refused = |credential: Credential| {
            assert!(!credential.is_some());
            let error = Error::new(Code::Unauthenticated, Stage::Admit, "who are you");
            let hints = credential
                .explain(error.hint("send a header"))
                .hints
                .join("\n");
            assert!(hints.contains(place.path().to_str().unwrap()), "{hints}");
            assert!(hints.contains("GLOVEBOX_TOKEN") && hints.contains("--token-file"));
            assert!(
                !hints.contains("send a header") && !hints.contains("gb_1"),
                "{hints}"
            );
            hints
        };
        assert!(refused(find("http://192.0.2.1:7070")).contains("another machine"));
        // Nothing listens on port 1.
        assert!(refused(find("http://127.0.0.1:1")).contains("another user"));
        std::fs::write(&file, "two words").unwrap();
        assert!(refused(find(&own)).contains("does not hold a token"));
        std::fs::remove_file(&file).unwrap();
        assert!(refused(find(&own)).contains("there is no"));
    }

    #[test]
    fn only_a_server_that_does_not_know_us_is_explained() {
        let credential = Credential::new("gb_12_ab", "from here".to_owned()).unwrap();
        let known = Error::new(Code::Forbidden, Stage::Admit, "no").hint("ask");
        assert_eq!(credential.explain(known).hints, ["ask"]);
        let unknown = Error::new(Code::Unauthenticated, Stage::Admit, "no");
        assert_eq!(credential.explain(unknown).hints[0], "from here");
    }
}
