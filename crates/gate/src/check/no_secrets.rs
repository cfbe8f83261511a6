//! `no_secrets`: nothing that looks like a credential is in what would be kept or sent.

use glovebox_model::{Deed, FailureCode, FileWrite};

use super::Found;
use crate::credential::{Randomness, credential_in};
use crate::diff::{Line, lines};
use crate::evidence::Evidence;
use crate::finding::{Finding, share};

/// Of all texts together.
const SCANNED_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoSecrets {
    /// Random-looking tokens count wherever they stand, not only behind a name such as `password`.
    pub high_entropy: bool,
}

/// What was looked through, and how much there was.
struct Scan {
    randomness: Randomness,
    left: usize,
    seen: u64,
    whole: u64,
}

impl Scan {
    fn text(
        &mut self,
        text: &[u8],
        whole: u64,
        place: &dyn Fn(usize) -> String,
    ) -> Result<(), Finding> {
        let part = &text[..text.len().min(self.left)];
        self.left -= part.len();
        for (number, line) in part.split(|byte| *byte == b'\n').enumerate() {
            self.line(line, &|| place(number + 1))?;
        }
        let seen = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.count(
            if part.len() < text.len() {
                seen.min(whole)
            } else {
                whole
            },
            whole,
        );
        Ok(())
    }

    fn line(&self, line: &[u8], place: &dyn Fn() -> String) -> Result<(), Finding> {
        match credential_in(line, self.randomness) {
            None => Ok(()),
            Some(what) => Err(Finding::bad(
                FailureCode::PolicyViolation,
                format!("{} holds what looks like {what}", place()),
                "take it out; a program gets a credential as a stored secret, with `--secret NAME`",
            )),
        }
    }

    fn count(&mut self, seen: u64, whole: u64) {
        self.seen = self.seen.saturating_add(seen);
        self.whole = self.whole.saturating_add(whole);
    }

    /// Only lines that are new: taking a secret out is no mistake.
    fn write(&mut self, write: &FileWrite) -> Result<(), Finding> {
        let path = write.path.display();
        self.line(write.path.as_bytes(), &|| "the name of a file".to_owned())?;
        let size = write.after.as_ref().filter(|it| it.kind == "file");
        let size = size.map_or(0, |it| it.size);
        let Some(diff) = &write.diff else {
            // The same contents under another name, or with another mode, were there before.
            let same = match (&write.before, &write.after) {
                (Some(before), Some(after)) => {
                    before.digest.is_some() && before.digest == after.digest
                }
                (Some(_) | None, Some(_) | None) => false,
            };
            self.count(if same { size } else { 0 }, size);
            return Ok(());
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
}

impl NoSecrets {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let subject = evidence.subject;
        let mut scan = Scan {
            randomness: match self.high_entropy {
                true => Randomness::Anywhere,
                false => Randomness::Named,
            },
            left: SCANNED_BYTES_MAX,
            seen: 0,
            whole: 0,
        };
        let here = u64::try_from(subject.stdout.len()).unwrap_or(u64::MAX);
        scan.text(subject.stdout, here, &|line| {
            format!("line {line} of the output")
        })?;
        scan.count(0, subject.stdout_bytes.saturating_sub(here));
        for effect in evidence.effects()? {
            match &effect.deed {
                Deed::FilesystemWrite(write) => scan.write(write)?,
                Deed::NetworkRequest(request) => {
                    let place = || format!("a request to `{}`", request.host);
                    scan.line(request.host.as_bytes(), &|| {
                        "the host of a request".to_owned()
                    })?;
                    let path = request.path.as_deref().unwrap_or_default();
                    scan.line(path.as_bytes(), &place)?;
                    // Of a body only the length is known here.
                    scan.count(0, request.body_bytes);
                }
                Deed::StateMutation(said) | Deed::ExternalApiCall(said) => {
                    let data = said.data.as_ref().map(ToString::to_string);
                    for text in [Some(&said.target), Some(&said.action), data.as_ref()] {
                        let text = text.map(String::as_bytes).unwrap_or_default();
                        let whole = u64::try_from(text.len()).unwrap_or(u64::MAX);
                        scan.text(text, whole, &|_| "what a tool reported".to_owned())?;
                    }
                }
                Deed::FilesystemRead(_) | Deed::ProcessSpawn(_) => {}
            }
        }
        let confidence = share(scan.seen, scan.whole);
        if scan.seen >= scan.whole {
            return Ok(Finding::good());
        }
        let reason = format!(
            "of {} bytes that were put out, written or sent, {} could be looked at",
            scan.whole, scan.seen
        );
        Ok(Finding::unsure(confidence, reason))
    }
}
