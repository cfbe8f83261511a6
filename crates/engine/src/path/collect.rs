//! Collect: what the exec left, within its limits.

use glovebox_backend::{Ended, Ending, TeardownGuard};
use glovebox_model::{Code, Error, Exec, Status, Stream};
use glovebox_workspace::{Collected, Dir, ExecFiles};

use super::run::Exited;

#[derive(Debug)]
pub(crate) struct Captured {
    pub(super) entry: glovebox_store::Opened,
    pub(super) record: Exec,
    /// None when the host's disk failed us; the record says so.
    pub(super) collected: Option<Collected>,
    pub(super) remains: TeardownGuard,
}

/// Whatever goes wrong here, the exec has run and is recorded.
/// `memory` is where the artifacts lie when they are not on disk yet.
pub(crate) fn collect(exited: Exited, files: &ExecFiles, memory: Option<&Dir>) -> Captured {
    let Exited {
        entry,
        mut record,
        result,
        streams,
        artifacts_cap,
        stopped,
        remains,
        masks,
    } = exited;
    let (stdout, stderr) = (streams.stdout.finish(), streams.stderr.finish());
    let settled = match memory {
        Some(memory) => files.settle_from(memory, &stdout, &stderr, artifacts_cap, &masks),
        None => files.settle(&stdout, &stderr, artifacts_cap, &masks),
    };
    record.artifacts_dir = Some(files.path());
    record.stdout_path = Some(files.stream_path(Stream::Stdout));
    record.stderr_path = Some(files.stream_path(Stream::Stderr));
    record.stdout_bytes = stdout.bytes;
    record.stderr_bytes = stderr.bytes;
    record.stdout_truncated = stdout.truncated;
    record.stderr_truncated = stderr.truncated;
    record.stdout = stdout.text;
    record.stderr = stderr.text;
    match result {
        Ok(ended) => apply(&mut record, &ended),
        Err(error) => fail(&mut record, error),
    }
    if record.status == Status::Canceled && stopped.is_some() {
        record.error = stopped.map(|error| error.of_exec(record.exec_id.clone()));
    }
    let collected = match settled {
        Ok(collected) => {
            record.artifacts = collected.artifacts();
            record.artifacts_dropped = collected.dropped().count;
            Some(collected)
        }
        Err(error) => {
            record
                .error
                .get_or_insert(error.of_exec(record.exec_id.clone()));
            None
        }
    };
    Captured {
        entry,
        record,
        collected,
        remains,
    }
}

fn apply(record: &mut Exec, ended: &Ended) {
    record.usage = ended.usage;
    record.limit_hit = ended.limit_hit;
    record.signal = ended.signal;
    record.duration_ms = Some(u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX));
    record.status = match ended.ending {
        Ending::Exited { code } => {
            record.exit_code = Some(code);
            if code == 0 {
                Status::Succeeded
            } else {
                Status::Failed
            }
        }
        Ending::Signaled { .. } => Status::Failed,
        Ending::TimedOut => {
            record.timed_out = true;
            record.killed = true;
            Status::TimedOut
        }
        Ending::LimitKilled => {
            record.killed = true;
            Status::Killed
        }
        Ending::Canceled => {
            record.killed = true;
            Status::Canceled
        }
    };
}

/// A command that does not exist is the caller's mistake; what is ours is `error`.
fn fail(record: &mut Exec, error: Error) {
    (record.status, record.exit_code) = match error.code {
        Code::CommandNotFound => (Status::Failed, Some(127)),
        Code::CommandNotExecutable | Code::CwdNotFound => (Status::Failed, Some(126)),
        Code::InvalidArgument => (Status::Failed, None),
        Code::Canceled => (Status::Canceled, None),
        _ => (Status::Error, None),
    };
    record.error = Some(error.of_exec(record.exec_id.clone()));
}
