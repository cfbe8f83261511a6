//! A subject while it is judged: what several checks need is made once.

use std::cell::OnceCell;

use glovebox_model::{Effect, FailureCode};
use serde_json::Value;

use crate::command::RunCommand;
use crate::finding::Finding;
use crate::kinds::Kinds;
use crate::pointer::Pointer;
use crate::subject::Subject;

/// More JSON than that is data, not an answer.
const JSON_BYTES_MAX: usize = 8 << 20;

pub(crate) struct Evidence<'e> {
    pub(crate) subject: &'e Subject<'e>,
    pub(crate) runner: &'e dyn RunCommand,
    /// Why not, when it could not be read.
    output: OnceCell<Result<Value, String>>,
}

impl<'e> Evidence<'e> {
    pub(crate) fn new(subject: &'e Subject<'e>, runner: &'e dyn RunCommand) -> Self {
        Self {
            subject,
            runner,
            output: OnceCell::new(),
        }
    }

    /// The JSON on standard output. A `null` is JSON.
    pub(crate) fn output(&self) -> Result<&Value, Finding> {
        let read = self.output.get_or_init(|| self.read_output());
        read.as_ref().map_err(|why| {
            let remediation = "print one JSON value, and nothing else, to standard output";
            Finding::bad(FailureCode::MissingData, why, remediation)
        })
    }

    /// None when nothing is there; a `null` is something.
    pub(crate) fn output_at(&self, at: &Pointer) -> Result<Option<&Value>, Finding> {
        self.output().map(|output| at.find(output))
    }

    fn read_output(&self) -> Result<Value, String> {
        let stdout = self.subject.stdout;
        if !self.subject.stdout_is_whole() || stdout.len() > JSON_BYTES_MAX {
            return Err("the output is longer than can be read as JSON".to_owned());
        }
        if stdout.trim_ascii().is_empty() {
            return Err("there is no output".to_owned());
        }
        serde_json::from_slice(stdout).map_err(|why| format!("the output is not JSON: {why}"))
    }

    /// Something that a check asks about was not watched for in this run.
    pub(crate) fn unwatched(&self, asked: Kinds) -> Option<Finding> {
        let missing = asked.without(self.subject.watched);
        (!missing.is_empty()).then(|| {
            Finding::bad(
                FailureCode::MissingData,
                format!("nothing is known of {missing}: it was not watched in this run"),
                "run it with `--backend native` in a sandbox of its own",
            )
        })
    }

    /// All effects, or a finding that says that some are missing.
    pub(crate) fn effects(&self) -> Result<&'e [Effect], Finding> {
        if self.subject.effects_are_whole() {
            return Ok(self.subject.effects);
        }
        let (here, count) = (self.subject.effects.len(), self.subject.effect_count);
        Err(Finding::bad(
            FailureCode::MissingData,
            format!(
                "only {here} of {} effects can be looked at, so nobody knows what the others are",
                count.total.max(count.dropped)
            ),
            "do less in one run, so that each effect is told",
        ))
    }
}
