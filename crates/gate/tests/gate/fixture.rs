use std::cell::Cell;

use glovebox_gate::{
    Beginning, Check, CommandCheck, CommandOutcome, Content, Contents, Gate, History, Kinds,
    NoContents, RunCommand, Subject, judge,
};
use glovebox_model::{
    Approach, ByteString, Correlation, Deed, Effect, EffectCount, FailureCode, FileFacts, FileOp,
    FileWrite, GateResult, Mode, NetCode, NetworkRequest, Result, SpaceId, Spoken, Status, Tier,
};

pub(crate) fn bytes(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

pub(crate) fn effect(deed: Deed) -> Effect {
    Effect {
        seq: 1,
        at: jiff::Timestamp::UNIX_EPOCH,
        deed,
        would_succeed: true,
        failure_reason: None,
        provisional: false,
        simulated_result: None,
    }
}

pub(crate) fn facts(kind: &str, size: u64) -> FileFacts {
    FileFacts {
        kind: kind.to_owned(),
        size,
        mode: 0o644,
        digest: None,
        attributes: None,
        target: None,
    }
}

pub(crate) fn write(path: &str, diff: Option<&str>) -> FileWrite {
    FileWrite {
        operation: FileOp::Created,
        path: bytes(path),
        from: None,
        before: None,
        after: Some(facts("file", 10)),
        diff: diff.map(str::to_owned),
        call: None,
    }
}

pub(crate) fn wrote(path: &str) -> Effect {
    effect(Deed::FilesystemWrite(write(
        path,
        Some("@@ -0,0 +1 @@\n+x\n"),
    )))
}

pub(crate) fn request(host: &str, port: u16) -> Effect {
    let at = (host.to_owned(), port);
    effect(Deed::NetworkRequest(NetworkRequest {
        method: Some("GET".to_owned()),
        path: Some("/".to_owned()),
        ..NetworkRequest::bare(Approach::Direct, Spoken::Https, at, NetCode::Ok)
    }))
}

pub(crate) fn counted(effects: &[Effect]) -> EffectCount {
    let violations = effects.iter().filter(|it| !it.would_succeed).count();
    EffectCount {
        total: effects.len() as u64,
        violations: violations as u64,
        dropped: 0,
    }
}

/// A program that printed this and did that, and succeeded.
pub(crate) fn with_subject<T>(
    stdout: &str,
    effects: &[Effect],
    look: impl FnOnce(Subject<'_>) -> T,
) -> T {
    let ids = Correlation::of_space(SpaceId::local());
    let argv = [bytes("prog"), bytes("--fast")];
    look(Subject {
        status: Status::Succeeded,
        exit_code: Some(0),
        duration_ms: Some(100),
        stdout: stdout.as_bytes(),
        stdout_here: stdout.len() as u64,
        stdout_bytes: stdout.len() as u64,
        stderr_bytes: 0,
        effects,
        effect_count: counted(effects),
        watched: Kinds::ALL,
        changes: None,
        artifacts: &[],
        mode: Mode::Transactional,
        tier: Tier::Safe,
        tool: "shell",
        ids: &ids,
        argv: &argv,
        history: History::default(),
        contents: &NoContents,
    })
}

/// The files that there are.
#[derive(Debug)]
pub(crate) struct Files<'f>(pub(crate) &'f [(Content<'f>, &'f [u8])]);

impl Contents for Files<'_> {
    fn read(&self, content: Content<'_>, most: usize) -> Option<Beginning> {
        let (_, bytes) = self.0.iter().find(|it| it.0 == content)?;
        let bytes = bytes[..bytes.len().min(most)].to_vec();
        let length = bytes.len() as u64;
        Some(Beginning { bytes, length })
    }
}

/// Ends each program with one code, and counts them.
#[derive(Default)]
pub(crate) struct Runner {
    pub(crate) outcome: CommandOutcome,
    pub(crate) ran: Cell<u32>,
}

impl Runner {
    pub(crate) fn ending(code: i32) -> Self {
        let outcome = CommandOutcome {
            exit_code: Some(code),
            ..CommandOutcome::default()
        };
        Self {
            outcome,
            ran: Cell::new(0),
        }
    }
}

impl RunCommand for Runner {
    fn run_command(&self, _: &CommandCheck) -> Result<CommandOutcome> {
        self.ran.set(self.ran.get() + 1);
        Ok(self.outcome.clone())
    }
}

pub(crate) fn gate(check: Check) -> Gate {
    Gate::new("g", vec![check]).unwrap()
}

pub(crate) fn one(check: Check, subject: &Subject<'_>) -> GateResult {
    let results = judge(&[gate(check)], subject, &Runner::ending(0));
    assert_eq!(results.len(), 1);
    results.into_iter().next().unwrap()
}

/// What a check says to it: nothing, or its code. A failure always has words for people.
pub(crate) fn said(check: Check, subject: &Subject<'_>) -> Option<FailureCode> {
    let result = one(check, subject);
    assert_eq!(result.blocked, !result.passed());
    if !result.passed() {
        let validation = result.validations.last().unwrap();
        assert!(validation.reason.is_some() && validation.remediation.is_some());
        assert!(result.remediation.is_some());
    }
    result.failure_code
}
