//! Whether a simulation that is done for real did what was shown. What leaves is compared on its way
//! out; here is what it left in the workspace: all of it but times, which differ each time.

use std::collections::HashMap;

use glovebox_model::{
    ByteString, Call, Confidence, Deed, Effect, Error, Exec, FailureCode, FileFacts, FileOp,
    FileWrite, GateResult, GateStatus, Mode, NetCode, Recovery, Validation,
};

use crate::effects::Simulations;

const GATE: &str = "preview";
const UNSEEN: &str = "unseen";
/// Of what left.
const SENT: &str = "previewed";
/// Of what was written.
const WRITTEN: &str = "contents";

/// What tried to send something that its simulation had not shown.
pub(super) fn strayed(record: &Exec) -> Option<GateResult> {
    if record.mode == Mode::Simulate {
        return None;
    }
    let preview = record.preview.as_ref()?;
    let traffic = record.traffic.as_ref()?;
    // Whatever policy refuses was not shown either: a simulation with such a thing is blocked.
    let refused = traffic.refused.iter().find(|it| was_refused(it.code));
    let strayed = match (&traffic.strayed, refused) {
        (Some(strayed), _) => strayed.clone(),
        (None, Some(refused)) => format!("{}:{}", refused.host, refused.port),
        (None, None) => return None,
    };
    let reason = format!(
        "`{strayed}` was tried, and `{}` did not show it; nothing of it was sent",
        preview.exec_id
    );
    let way = "simulate it again, and look at what it does".to_owned();
    Some(blocked(SENT, reason, way))
}

impl Simulations {
    /// What left other files than its simulation showed.
    pub(super) fn differs(
        &self,
        call: &Call,
        record: &Exec,
        done: &[Effect],
    ) -> Option<GateResult> {
        let preview = call.preview.as_ref()?;
        let (shown, exec) = (&preview.exec_id, &record.exec_id);
        let reason = match self.previewed(call) {
            Ok(effects) => {
                let found = differences(&effects.unwrap_or_default(), done);
                let ((path, how), more) = found.split_first()?;
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                format!("`{path}` {how}, unlike what `{shown}` showed{more}; it is not kept")
            }
            Err(error) => {
                let why = error.message;
                format!("what it wrote cannot be compared with what `{shown}` showed: {why}")
            }
        };
        let way = format!(
            "look at it (`glovebox diff {exec}`) and keep it (`glovebox apply {exec}`) or drop it (`glovebox discard {exec}`)"
        );
        Some(blocked(WRITTEN, reason, way))
    }
}

/// Whether nothing but other files than were shown holds it back: people may look and keep them.
pub(crate) fn is_for_review(record: &Exec) -> bool {
    let mut blocked = record.gates.iter().filter(|it| it.blocked).peekable();
    let is_written = |it: &GateResult| {
        it.gate == GATE && it.validations.iter().all(|it| it.validator == WRITTEN)
    };
    blocked.peek().is_some() && blocked.all(is_written)
}

/// Of what was written and cannot be read: it may be anything.
pub(super) fn unseen(why: &Error) -> GateResult {
    let reason = format!("what it wrote cannot be read: {}", why.message);
    let way = "change what it does so that all of it can be looked at".to_owned();
    failed((UNSEEN, UNSEEN), FailureCode::MissingData, reason, way)
}

fn blocked(validator: &str, reason: String, way: String) -> GateResult {
    failed((GATE, validator), FailureCode::NonDeterminism, reason, way)
}

fn failed(
    (gate, validator): (&str, &str),
    code: FailureCode,
    reason: String,
    way: String,
) -> GateResult {
    GateResult {
        gate: gate.to_owned(),
        status: GateStatus::Blocked,
        blocked: true,
        failure_code: Some(code),
        remediation: Some(way.clone()),
        recovery: Some(Recovery::AskUser),
        validations: vec![Validation {
            validator: validator.to_owned(),
            valid: false,
            confidence: Confidence::FULL,
            reason: Some(reason),
            failure_code: Some(code),
            remediation: Some(way),
        }],
    }
}

/// By us, and not by the world outside.
const fn was_refused(code: NetCode) -> bool {
    match code {
        NetCode::NetModeNone
        | NetCode::NotInAllowlist
        | NetCode::PortNotAllowed
        | NetCode::InvalidDestination
        | NetCode::ProxyRequired
        | NetCode::SniMismatch
        | NetCode::DnsDenied
        | NetCode::PolicyExpired
        | NetCode::ApprovalRequired
        | NetCode::NotPreviewed => true,
        NetCode::Ok | NetCode::InternalError | NetCode::Other => false,
    }
}

/// What stands at a path in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left<'e> {
    Gone,
    /// Nothing is known of what is never carried over.
    Is(Option<&'e FileFacts>),
    /// It was refused.
    Tried,
}

fn writes(effects: &[Effect]) -> impl Iterator<Item = &FileWrite> {
    effects.iter().filter_map(|effect| match &effect.deed {
        Deed::FilesystemWrite(write) => Some(write),
        _ => None,
    })
}

/// A rename is a path that is gone and one that is there.
fn left(write: &FileWrite) -> impl Iterator<Item = (&ByteString, Left<'_>)> {
    let there = match write.operation {
        FileOp::Removed => Left::Gone,
        FileOp::Attempted => Left::Tried,
        FileOp::Created
        | FileOp::Modified
        | FileOp::Replaced
        | FileOp::Renamed
        | FileOp::Touched => Left::Is(write.after.as_ref()),
    };
    let before = write.from.iter().map(|from| (from, Left::Gone));
    std::iter::once((&write.path, there)).chain(before)
}

/// Each path with how it differs.
fn differences(shown: &[Effect], done: &[Effect]) -> Vec<(String, String)> {
    let known: HashMap<_, _> = writes(shown).flat_map(left).collect();
    let now: HashMap<_, _> = writes(done).flat_map(left).collect();
    let other = writes(done).flat_map(left).filter_map(|(path, is)| {
        let how = how(known.get(path).copied(), is)?;
        Some((path.one_line(), how))
    });
    // One that only got another time need not get it again.
    let lasting = |it: &&FileWrite| it.before.as_ref() != it.after.as_ref();
    let kept = writes(shown).filter(lasting).flat_map(left);
    let missing = kept.filter(|(path, is)| *is != Left::Tried && !now.contains_key(path));
    let missing = missing.map(|(path, _)| (path.one_line(), "was left as it was".to_owned()));
    other.chain(missing).collect()
}

/// None if it is what was shown.
fn how(shown: Option<Left<'_>>, now: Left<'_>) -> Option<String> {
    let text = match (shown, now) {
        (Some(Left::Is(Some(shown))), Left::Is(Some(now))) => return facts_differ(shown, now),
        (Some(shown), now) if shown == now => return None,
        (_, Left::Gone) => "was removed",
        (_, Left::Is(_)) => "was written",
        (_, Left::Tried) => "was tried to be written",
    };
    Some(text.to_owned())
}

fn facts_differ(shown: &FileFacts, now: &FileFacts) -> Option<String> {
    if shown.kind != now.kind {
        return Some(format!("is a {} and not a {}", now.kind, shown.kind));
    }
    if shown.target != now.target {
        return Some("leads elsewhere".to_owned());
    }
    if now.kind == "file" && (shown.digest.is_none() || now.digest.is_none()) {
        return Some("is too large to be compared".to_owned());
    }
    if shown.digest != now.digest {
        return Some("has other contents".to_owned());
    }
    if shown.mode != now.mode {
        return Some(format!(
            "has another mode ({:o} and not {:o})",
            now.mode, shown.mode
        ));
    }
    (shown.attributes != now.attributes).then(|| "has other attributes".to_owned())
}
