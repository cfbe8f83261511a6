//! What is pulled: a registry, a repository there, and one image of it.

use std::fmt;
use std::str::FromStr;

use glovebox_model::{Code, Error, Stage};
use glovebox_workspace::image::{ImageDigest, ImageName};

const LONGEST: usize = 200;
const TAG_MOST: usize = 128;
/// Where the images are that people call `docker.io`.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// `REGISTRY/NAME[:TAG|@DIGEST]`. The registry is always said: a name alone would mean whatever
/// somebody else configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// A host, with its port if one was given.
    registry: String,
    repository: String,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    Tag(String),
    Digest(ImageDigest),
}

impl ImageReference {
    pub(super) fn registry(&self) -> &str {
        match self.registry == DOCKER.0 {
            true => DOCKER.1,
            false => &self.registry,
        }
    }

    /// There, a name without a publisher is one of the library's.
    pub(super) fn repository(&self) -> String {
        match self.registry == DOCKER.0 && !self.repository.contains('/') {
            true => format!("library/{}", self.repository),
            false => self.repository.clone(),
        }
    }

    pub(super) fn which(&self) -> &Which {
        &self.which
    }

    /// The last part of the repository with its tag: what people call it.
    pub fn short_name(&self) -> Result<ImageName, Error> {
        let last = self.repository.rsplit('/').next().unwrap_or_default();
        match &self.which {
            Which::Tag(tag) => format!("{last}:{tag}").parse(),
            Which::Digest(_) => last.parse(),
        }
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match &self.which {
            Which::Tag(tag) => write!(f, ":{tag}"),
            Which::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

impl FromStr for ImageReference {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
            Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("`{shown}` is no image of a registry: {why}"),
            )
            .hint(
                "write it as `docker.io/python:3.12` or `registry.example.com/team/tools@sha256:…`",
            )
        };
        if text.len() > LONGEST {
            return Err(refuse("it is longer than 200 bytes"));
        }
        let (registry, rest) = text
            .split_once('/')
            .filter(|(first, _)| first.contains(['.', ':']) || *first == "localhost")
            .ok_or_else(|| refuse("it names no registry"))?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        if registry.is_empty() || !registry.bytes().all(plain) {
            return Err(refuse("its registry is no host"));
        }
        let (repository, which) = match rest.split_once('@') {
            Some((repository, digest)) => {
                // A tag before a digest says nothing: the digest decides.
                let repository = repository.split(':').next().unwrap_or_default();
                (repository, Which::Digest(digest.parse()?))
            }
            None => match rest.split_once(':') {
                Some((repository, tag)) => (repository, Which::Tag(tag.to_owned())),
                None => (rest, Which::Tag("latest".to_owned())),
            },
        };
        if !is_repository(repository) {
            return Err(refuse(
                "a repository has lower-case letters, digits and `.`, `_`, `-` between them, in parts with `/`",
            ));
        }
        if let Which::Tag(tag) = &which
            && !is_tag(tag)
        {
            return Err(refuse("its tag is no tag"));
        }
        Ok(Self {
            registry: registry.to_ascii_lowercase(),
            repository: repository.to_owned(),
            which,
        })
    }
}

/// Becomes part of a URL: nothing in it can mean another place.
fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        let ends = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        ends(part.as_bytes().first())
            && ends(part.as_bytes().last())
            && part.bytes().all(inner)
            && !part.contains("..")
    };
    text.split('/').all(part)
}

fn is_tag(text: &str) -> bool {
    let first = text.bytes().next();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    first.is_some_and(word)
        && text.len() <= TAG_MOST
        && text.bytes().all(|byte| word(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_what_people_write() {
        let parse = |text: &str| text.parse::<ImageReference>().unwrap();
        let python = parse("docker.io/python:3.12");
        assert_eq!(python.registry(), "registry-1.docker.io");
        assert_eq!(python.repository(), "library/python");
        assert_eq!(python.short_name().unwrap().as_str(), "python:3.12");
        let own = parse("127.0.0.1:5000/team/tools");
        assert_eq!(own.registry(), "127.0.0.1:5000");
        assert_eq!(own.which(), &Which::Tag("latest".to_owned()));
        let digest = format!("sha256:{}", "0a".repeat(32));
        let pinned = parse(&format!("ghcr.io/a/b:ignored@{digest}"));
        assert_eq!(pinned.to_string(), format!("ghcr.io/a/b@{digest}"));
        assert_eq!(pinned.short_name().unwrap().as_str(), "b");
    }

    #[test]
    fn nothing_in_a_reference_leads_elsewhere() {
        for bad in [
            "",
            "python:3.12",
            "library/python",
            "docker.io/",
            "docker.io/../x",
            "docker.io/a//b",
            "docker.io/A",
            "docker.io/a?x=1",
            "docker.io/a:t/../../v2",
            "docker.io/a:-t",
            "docker.io/a@sha256:00",
            "user@docker.io/a",
            "docker.io/a b",
            "docker.io/a%2fb",
            "docker.io#x/a",
        ] {
            assert!(bad.parse::<ImageReference>().is_err(), "{bad}");
        }
    }
}
