//! `no_secrets`: nothing that looks like a credential is in what would be kept or sent.

use std::collections::HashSet;

use glovebox_model::{Deed, Effect, FailureCode, FileWrite, NetworkRequest, ProcessSpawn};

use super::Found;
use crate::contents::{Content, Contents};
use crate::credential::{Randomness, credential_in_line};
use crate::diff::{Line, lines};
use crate::evidence::Evidence;
use crate::finding::{Finding, share};
use crate::subject::Subject;

/// Of all texts together.
const SCANNED_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoSecrets {
    /// Random-looking tokens count wherever they stand, not only behind a name such as `password`.
    pub high_entropy: bool,
}

/// What was looked through, and how much there was.
struct Scan<'s> {
    contents: &'s dyn Contents,
    randomness: Randomness,
    left: usize,
    seen: u64,
    whole: u64,
}

impl Scan<'_> {
    /// A text that stands for so many bytes.
    fn text(
        &mut self,
        text: &[u8],
        whole: u64,
        place: &dyn Fn(usize) -> String,
    ) -> Result<(), Finding> {
        let part = &text[..text.len().min(self.left)];
        self.left -= part.len();
        for (number, line) in split(part).enumerate() {
            self.line(line, &|| place(number + 1))?;
        }
        let seen = match part.len() < text.len() {
            true => length(part).min(whole),
            false => whole,
        };
        self.count(seen, whole);
        Ok(())
    }

    fn line(&self, line: &[u8], place: &dyn Fn() -> String) -> Result<(), Finding> {
        match credential_in_line(line, self.randomness) {
            None => Ok(()),
            Some(what) => Err(holds(&place(), what)),
        }
    }

    /// A file of that size, whatever it holds: a credential in what is no text is one as well. Lines
    /// of `old` were there before.
    fn file(
        &mut self,
        content: Content<'_>,
        old: Option<Content<'_>>,
        size: u64,
        place: &str,
    ) -> Result<(), Finding> {
        let Some(found) = self.contents.read(content, self.left) else {
            self.count(0, size);
            return Ok(());
        };
        self.left = self.left.saturating_sub(found.bytes.len());
        self.count(found.length.min(size), size);
        let randomness = self.randomness;
        let suspect = |line: &&[u8]| credential_in_line(line, randomness).is_some();
        let mut suspects = split(&found.bytes).filter(suspect).peekable();
        if suspects.peek().is_none() {
            return Ok(());
        }
        let old = old.and_then(|it| self.contents.read(it, SCANNED_BYTES_MAX));
        let old = old.map(|it| it.bytes).unwrap_or_default();
        let known: HashSet<&[u8]> = split(&old).filter(suspect).collect();
        match suspects.find(|line| !known.contains(line)) {
            None => Ok(()),
            Some(line) => self.line(line, &|| place.to_owned()),
        }
    }

    fn count(&mut self, seen: u64, whole: u64) {
        self.seen = self.seen.saturating_add(seen);
        self.whole = self.whole.saturating_add(whole);
    }

    fn output(&mut self, subject: &Subject<'_>) -> Result<(), Finding> {
        // Of what is long the record has the end, which the file may lack.
        let here = match subject.stdout_is_whole() {
            true => subject.stdout_bytes,
            false => 0,
        };
        self.text(subject.stdout, here, &|line| {
            format!("line {line} of the output")
        })?;
        if !subject.stdout_is_whole() {
            let before = self.seen;
            self.file(Content::Stdout, None, subject.stdout_bytes, "the output")?;
            let read = self.seen - before;
            self.seen += subject.stdout_here.saturating_sub(read);
        }
        self.file(
            Content::Stderr,
            None,
            subject.stderr_bytes,
            "the error output",
        )?;
        for artifact in subject.artifacts {
            let place = format!("the artifact `{}`", artifact.path.one_line());
            self.line(artifact.path.as_bytes(), &|| {
                "the name of an artifact".to_owned()
            })?;
            self.file(
                Content::Artifact(&artifact.path),
                None,
                artifact.size,
                &place,
            )?;
        }
        Ok(())
    }

    fn effect(&mut self, effect: &Effect) -> Result<(), Finding> {
        match &effect.deed {
            Deed::FilesystemWrite(write) => self.write(write),
            Deed::NetworkRequest(request) => self.request(request),
            Deed::ProcessSpawn(spawn) => self.spawn(spawn),
            Deed::StateMutation(said) | Deed::ExternalApiCall(said) => {
                let data = said.data.as_ref().map(ToString::to_string);
                for text in [Some(&said.target), Some(&said.action), data.as_ref()] {
                    let text = text.map(String::as_bytes).unwrap_or_default();
                    self.text(text, length(text), &|_| "what a tool reported".to_owned())?;
                }
                Ok(())
            }
            Deed::FilesystemRead(_) => Ok(()),
        }
    }

    /// Only lines that are new: taking a secret out is no mistake.
    fn write(&mut self, write: &FileWrite) -> Result<(), Finding> {
        let path = write.path.one_line();
        self.line(write.path.as_bytes(), &|| "the name of a file".to_owned())?;
        let (before, after) = (write.before.as_ref(), write.after.as_ref());
        let attributes = after.and_then(|it| it.attributes.as_ref());
        if attributes.is_some() && before.and_then(|it| it.attributes.as_ref()) != attributes {
            // Of those there is only a digest.
            self.count(0, 1);
        }
        if let Some(target) = after.and_then(|it| it.target.as_ref())
            && before.and_then(|it| it.target.as_ref()) != Some(target)
        {
            let text = target.as_bytes();
            self.text(text, length(text), &|_| format!("where `{path}` leads"))?;
        }
        let file = after.filter(|it| it.kind == "file");
        let size = file.map_or(0, |it| it.size);
        let Some(diff) = &write.diff else {
            // The same contents with another mode were there before.
            let digest = after.and_then(|it| it.digest.as_ref());
            let same = digest.is_some() && before.and_then(|it| it.digest.as_ref()) == digest;
            if same || size == 0 {
                self.count(size, size);
                return Ok(());
            }
            let old = write.from.as_ref().unwrap_or(&write.path);
            let (new, old) = (Content::After(&write.path), Content::Before(old));
            return self.file(new, Some(old), size, &format!("`{path}`"));
        };
        let new: Vec<&str> = lines(diff)
            .map(|line| match line {
                Line::Added(text) => text,
                Line::Removed(_) | Line::Other => "",
            })
            .collect();
        self.text(new.join("\n").as_bytes(), size, &|line| {
            format!("line {line} of the diff of `{path}`")
        })
    }

    fn request(&mut self, request: &NetworkRequest) -> Result<(), Finding> {
        self.line(request.host.as_bytes(), &|| {
            "the host of a request".to_owned()
        })?;
        for text in [&request.path, &request.query].into_iter().flatten() {
            self.line(text.as_bytes(), &|| {
                format!("a request to `{}`", request.host)
            })?;
        }
        // Of a body only the length is known here.
        self.count(0, request.body_bytes);
        Ok(())
    }

    fn spawn(&mut self, spawn: &ProcessSpawn) -> Result<(), Finding> {
        for word in &spawn.argv {
            let text = word.as_bytes();
            self.text(text, length(text), &|_| {
                format!("an argument of `{}`", spawn.program.one_line())
            })?;
        }
        // Nobody knows how much more there was.
        self.count(0, u64::from(spawn.argv_truncated));
        Ok(())
    }
}

fn holds(place: &str, what: &str) -> Finding {
    Finding::bad(
        FailureCode::PolicyViolation,
        format!("{place} holds what looks like {what}"),
        "take it out; a program gets a credential as a stored secret, with `--secret NAME`",
    )
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn length(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

impl NoSecrets {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let subject = evidence.subject;
        let mut scan = Scan {
            contents: subject.contents,
            randomness: match self.high_entropy {
                true => Randomness::Anywhere,
                false => Randomness::Named,
            },
            left: SCANNED_BYTES_MAX,
            seen: 0,
            whole: 0,
        };
        scan.output(subject)?;
        for effect in evidence.effects()? {
            scan.effect(effect)?;
        }
        if scan.seen >= scan.whole {
            return Ok(Finding::good());
        }
        let reason = format!(
            "of {} bytes that were put out, written or sent, {} could be looked at",
            scan.whole, scan.seen
        );
        Ok(Finding::unseen(share(scan.seen, scan.whole), reason))
    }
}
