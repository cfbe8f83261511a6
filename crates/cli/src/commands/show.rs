//! `glovebox show`.

use glovebox_model::{
    Access, Artifact, Correlation, Exec, Grade, Guarantee, Isolation, LimitField, LimitScope,
    NetworkMode, Profile, Result, Verdict, Writes,
};
use jiff::Timestamp;

use super::ps;
use super::workspace::change_count;
use crate::args::{Global, ShowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, command_line, duration, size, time};
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::render;
use crate::stdout;

pub(crate) fn run(global: &Global, args: &ShowArgs) -> Result<Exit> {
    let exec = Context::new(global).some_records()?.find(&args.exec)?;
    if global.json {
        stdout::json(&exec)?;
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    stdout::text(&text(&exec, Timestamp::now(), paint))?;
    if exec.abandoned {
        render::note(&ps::abandoned(&exec));
    }
    Ok(Exit::SUCCESS)
}

fn text(exec: &Exec, now: Timestamp, paint: Paint) -> String {
    let mut sheet = KeyValues::new(paint);
    what(&mut sheet, exec);
    when(&mut sheet, exec, now);
    ids(&mut sheet, &exec.ids);
    for note in &exec.notes {
        sheet.line("note", note);
    }
    output(&mut sheet, exec);
    changes(&mut sheet, exec);
    if let Some(profile) = &exec.policy_snapshot {
        policy(&mut sheet, exec, profile);
        limits(&mut sheet, exec, profile);
    }
    isolation(&mut sheet, &exec.isolation);
    if let Some(error) = &exec.error {
        sheet.text.push('\n');
        sheet.text.push_str(&render::sentence(error, paint));
    }
    if let Some(receipt) = &exec.receipt {
        let kept = format!("{}:{}", receipt.seq, receipt.hash);
        sheet.title("receipt");
        sheet.text.push_str(&format!("{kept}\n"));
    }
    sheet.text
}

fn what(sheet: &mut KeyValues, exec: &Exec) {
    sheet.line("exec", exec.exec_id.as_str());
    sheet.optional("client id", exec.client_id.as_ref().map(|id| id.as_str()));
    sheet.toned("status", ps::tone(exec.status), &status(exec));
    sheet.line("command", &command_line(&exec.cmd, &exec.args));
    sheet.line("directory", &exec.cwd.display());
    sheet.line("project", exec.project_id.as_str());
    sheet.optional("skill", exec.skill_id.as_deref());
    sheet.optional("image", exec.image.as_deref());
    if !exec.env_keys.is_empty() {
        let keys: Vec<&str> = exec.env_keys.iter().map(|key| key.as_str()).collect();
        sheet.line("env", &format!("{} (values are not kept)", keys.join(", ")));
    }
    sheet.optional("backend", exec.backend.map(|it| it.as_str()));
    sheet.optional("runtime", exec.runtime.as_deref());
    sheet.optional("sandbox", exec.sandbox_id.as_ref().map(|it| it.as_str()));
}

fn status(exec: &Exec) -> String {
    let mut why = Vec::new();
    why.extend(exec.queue_position.map(|before| match before {
        0 => "next".to_owned(),
        before => format!("{before} before it"),
    }));
    why.extend(exec.exit_code.map(|code| format!("exit code {code}")));
    why.extend(exec.signal.map(|signal| format!("signal {signal}")));
    why.extend(exec.limit_hit.map(|limit| format!("limit: {limit}")));
    if why.is_empty() {
        return exec.status.to_string();
    }
    format!("{} ({})", exec.status, why.join(", "))
}

fn when(sheet: &mut KeyValues, exec: &Exec, now: Timestamp) {
    let ago = |at: Timestamp| format!("{} ({} ago)", time(at), age(at, now));
    sheet.optional("started", exec.started_at.map(ago).as_deref());
    sheet.optional("ended", exec.ended_at.map(ago).as_deref());
    sheet.optional("duration", exec.duration_ms.map(duration).as_deref());
}

fn ids(sheet: &mut KeyValues, ids: &Correlation) {
    let Correlation {
        space_id: _,
        user_id,
        conversation_id,
        turn_id,
        task_id,
        workflow_id,
        agent_id,
        session_id,
    } = ids;
    sheet.optional("user", user_id.as_deref());
    sheet.optional("conversation", conversation_id.as_deref());
    sheet.optional("turn", turn_id.as_deref());
    sheet.optional("task", task_id.as_deref());
    sheet.optional("workflow", workflow_id.as_deref());
    sheet.optional("agent", agent_id.as_deref());
    sheet.optional("session", session_id.as_deref());
}

fn output(sheet: &mut KeyValues, exec: &Exec) {
    if exec.stdout_path.is_none() && exec.artifacts.is_empty() {
        return;
    }
    sheet.title("output");
    let cut = |truncated: bool| if truncated { " (cut)" } else { "" };
    let stream = |bytes, truncated| format!("{}{}", size(bytes), cut(truncated));
    sheet.line("stdout", &stream(exec.stdout_bytes, exec.stdout_truncated));
    sheet.line("stderr", &stream(exec.stderr_bytes, exec.stderr_truncated));
    for Artifact {
        path, size: bytes, ..
    } in &exec.artifacts
    {
        sheet.line(
            "artifact",
            &format!("{} ({})", path.display(), size(*bytes)),
        );
    }
    sheet.optional("files", exec.artifacts_dir.as_deref());
}

/// What it did to its workspace, where that is known.
fn changes(sheet: &mut KeyValues, exec: &Exec) {
    if exec.writes.is_direct() && exec.snapshot_before.is_none() {
        return;
    }
    sheet.title("workspace");
    let writes = match exec.writes {
        Writes::Direct => "to the workspace itself",
        Writes::Held => "beside the workspace, until somebody decides",
        Writes::Dropped => "beside the workspace, thrown away",
        Writes::IfOk => "beside the workspace, kept if it succeeds",
    };
    sheet.line("writes", writes);
    if let Some(count) = &exec.changes {
        let became = match exec.verdict {
            Some(Verdict::Keep) => "kept: ",
            Some(Verdict::Hold) => "held: ",
            Some(Verdict::Discard) => "discarded: ",
            None => "",
        };
        sheet.line("changes", &format!("{became}{}", change_count(count)));
    }
    let before = exec.snapshot_before.as_ref();
    sheet.optional("before", before.map(|it| it.as_str()));
}

fn policy(sheet: &mut KeyValues, exec: &Exec, profile: &Profile) {
    sheet.title("policy");
    let network = match profile.network {
        NetworkMode::Allowlist => {
            let names: Vec<String> = profile.allow_net.iter().map(ToString::to_string).collect();
            format!("allowlist: {}", names.join(", "))
        }
        mode @ (NetworkMode::None | NetworkMode::Retrieval | NetworkMode::Unrestricted) => {
            mode.to_string()
        }
    };
    sheet.line("network", &network);
    let access = match profile.workspace {
        Access::None => "none",
        Access::Ro => "read-only",
        Access::Rw => "read and write",
    };
    sheet.line("workspace", access);
    sheet.line("risk", exec.risk.tier.as_str());
    for capped in &exec.capped {
        sheet.line(
            "capped",
            &format!(
                "{} from {} to {} by {}",
                capped.field, capped.asked, capped.granted, capped.layer
            ),
        );
    }
}

/// Each limit, and what was used of it where that is known.
fn limits(sheet: &mut KeyValues, exec: &Exec, profile: &Profile) {
    sheet.title("limits");
    let usage = &exec.usage;
    let traffic = exec.traffic.as_ref();
    let ran = exec.duration_ms.is_some();
    let networked = profile.network > NetworkMode::None;
    // A session has another clock than what is left alone until its end.
    let no_clock = match exec.session {
        Some(_) => LimitField::Wall,
        None => LimitField::SessionTime,
    };
    for field in LimitField::ALL
        .into_iter()
        .filter(|it| networked || it.scope() != LimitScope::Network)
        .filter(|it| *it != no_clock)
    {
        let used = match field {
            LimitField::Wall | LimitField::SessionTime => exec.duration_ms.map(duration),
            LimitField::CpuTime => Some(duration(usage.cpu_ms)),
            LimitField::Memory => Some(size(usage.max_memory_bytes)),
            LimitField::Pids => Some(usage.max_pids.to_string()),
            LimitField::Stdout => Some(size(exec.stdout_bytes)),
            LimitField::Stderr => Some(size(exec.stderr_bytes)),
            LimitField::EgressBytes => traffic.map(|it| size(it.sent.saturating_add(it.received))),
            LimitField::EgressConnections => traffic.map(|it| it.connections.to_string()),
            _ => None,
        };
        let most = field.show(field.get(&profile.limits));
        let shown = match used.filter(|_| ran) {
            Some(used) => format!("{most:<12} used {used}"),
            None => most,
        };
        sheet.line(field.key(), &shown);
    }
}

fn isolation(sheet: &mut KeyValues, isolation: &Isolation) {
    if isolation.0.is_empty() {
        return;
    }
    sheet.title("isolation");
    let grades = [
        (Grade::Kernel, "kernel", Tone::Good),
        (Grade::Supervised, "supervised", Tone::Caution),
        (Grade::Unavailable, "unavailable", Tone::Bad),
    ];
    for (grade, name, tone) in grades {
        let kept: Vec<&str> = isolation
            .0
            .iter()
            .filter(|(_, it)| **it == grade)
            .map(|(guarantee, _): (&Guarantee, _)| guarantee.as_str())
            .collect();
        if !kept.is_empty() {
            sheet.toned(name, tone, &kept.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;
    use glovebox_model::{ByteString, Code, Error, Stage, Status};

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_121).unwrap()
    }

    #[test]
    fn a_record_reads_as_a_page() {
        let expected = "\
exec        e_01010101010101010101010101010101
status      failed (exit code 3)
command     sh -c 'echo a long line; exit 3'
directory   /workspace/work
project     demo
env         LANG (values are not kept)
backend     native
started     2023-11-14T22:13:20Z (2m ago)
ended       2023-11-14T22:13:21Z (2m ago)
duration    1.5s

output
stdout      12 B
stderr      0 B
files       projects/demo/artifacts/e

policy
network     none
workspace   read and write
risk        safe

limits
timeout     1m           used 1.5s
cpu_time    1m           used 12ms
memory      512M         used 3.0 MiB
pids        64           used 2
cpus        1
disk        1G
files       1000
stdout      1M           used 12 B
stderr      1M           used 0 B
artifacts   50M
open_files  1024
gpus        0
tpus        0

isolation
kernel      own_users, own_pids, own_mounts, own_ipc, own_hostname, own_cgroup_view, no_network, egress_only, \
read_only_root, no_capabilities, no_new_privileges, syscall_filter, file_rules, no_survivors, \
memory_limit, pids_limit, cpu_limit
supervised  disk_limit
unavailable own_kernel

receipt
4:abababababababababababababababababababababababababababababababab
";
        assert_eq!(text(&sample::exec(1), now(), Paint::Plain), expected);
    }

    #[test]
    fn a_refusal_says_why_and_nothing_that_did_not_happen() {
        let mut exec = sample::exec(2);
        exec.status = Status::PolicyDenied;
        exec.exit_code = None;
        exec.started_at = None;
        exec.duration_ms = None;
        exec.stdout_path = None;
        exec.policy_snapshot = None;
        exec.isolation = Isolation::default();
        exec.backend = None;
        exec.env_keys.clear();
        exec.error = Some(
            Error::new(Code::PolicyDenied, Stage::Resolve, "`pids` is too many").hint("ask less"),
        );
        let expected = "\
exec        e_02020202020202020202020202020202
status      policy_denied
command     sh -c 'echo a long line; exit 3'
directory   /workspace/work
project     demo
ended       2023-11-14T22:13:21Z (2m ago)

error[policy_denied]: `pids` is too many

hint: ask less

receipt
4:abababababababababababababababababababababababababababababababab
";
        assert_eq!(text(&exec, now(), Paint::Plain), expected);
    }

    #[test]
    fn nothing_in_a_record_steers_the_terminal() {
        let mut exec = sample::exec(3);
        exec.cmd = ByteString::try_from("a\x1b]0;x\x07").unwrap();
        exec.cwd = ByteString::try_from("/workspace/\x1b[2J\nexec   forged").unwrap();
        exec.ids.task_id = Some("\u{202e}evil\r".to_owned());
        exec.artifacts = vec![Artifact {
            path: ByteString::try_from("\u{9b}6n").unwrap(),
            size: 1,
            hash: String::new(),
        }];
        exec.error = Some(Error::new(Code::Internal, Stage::Run, "\x1bc"));
        let shown = text(&exec, now(), Paint::Plain);
        for steering in ['\x1b', '\x07', '\r', '\u{9b}', '\u{202e}'] {
            assert!(!shown.contains(steering), "{steering:?} in {shown}");
        }
        assert!(!shown.contains("\nexec   forged"), "{shown}");
    }
}
