//! Records for the tests of those who print them.

use glovebox_model::{
    Access, ByteString, Bytes, Correlation, Count, Cpus, Exec, ExecId, Grade, Guarantee, Isolation,
    Limits, LimitsDemand, Millis, Mode, NetworkMode, Profile, ReceiptRef, Risk, SecurityMode,
    SpaceId, Status, Tier, Usage,
};
use jiff::Timestamp;

fn bytes(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(60),
            cpu_ms: Millis::secs(60),
            memory_bytes: Bytes::mib(512),
            pids: Count(64),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(1024),
            disk_files: Count(1000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(50),
            open_files: Count(1024),
        },
        network: NetworkMode::None,
        allow_net: [].into(),
        workspace: Access::Rw,
        env_allow: ["*".to_owned()].into(),
        tier: Tier::Safe,
        security: SecurityMode::Strict,
        limits_demand: LimitsDemand::Supervised,
        backend: None,
        image: None,
    }
}

/// One that ran and failed.
pub(crate) fn exec(number: u8) -> Exec {
    let grade = |guarantee: Guarantee| match guarantee {
        Guarantee::DiskLimit => Grade::Supervised,
        _ => Grade::Kernel,
    };
    let at = |second| Some(Timestamp::from_second(second).unwrap());
    Exec {
        exec_id: format!("e_{}", format!("{number:02x}").repeat(16))
            .parse::<ExecId>()
            .unwrap(),
        client_id: None,
        project_id: "demo".parse().unwrap(),
        mode: Mode::Run,
        skill_id: None,
        cmd: bytes("sh"),
        args: vec![bytes("-c"), bytes("echo a long line; exit 3")],
        cwd: bytes("/workspace/work"),
        env_keys: vec!["LANG".parse().unwrap()],
        image: None,
        sandbox_id: None,
        status: Status::Failed,
        queue_position: None,
        exit_code: Some(3),
        signal: None,
        timed_out: false,
        killed: false,
        limit_hit: None,
        started_at: at(1_700_000_000),
        ended_at: at(1_700_000_001),
        duration_ms: Some(1500),
        stdout: "a long line\n".to_owned(),
        stderr: String::new(),
        stdout_bytes: 12,
        stderr_bytes: 0,
        stdout_truncated: false,
        stderr_truncated: false,
        stdout_path: Some("projects/demo/artifacts/e/stdout.txt".to_owned()),
        stderr_path: Some("projects/demo/artifacts/e/stderr.txt".to_owned()),
        artifacts_dir: Some("projects/demo/artifacts/e".to_owned()),
        artifacts: Vec::new(),
        artifacts_dropped: 0,
        backend: Some(glovebox_model::BackendName::Native),
        isolation: Isolation(Guarantee::ALL.map(|it| (it, grade(it))).into()),
        policy_snapshot: Some(profile()),
        capped: Vec::new(),
        risk: Risk::default(),
        usage: Usage {
            cpu_ms: 12,
            max_memory_bytes: 3 << 20,
            max_pids: 2,
        },
        effects: Vec::new(),
        gates: Vec::new(),
        verdict: None,
        error: None,
        receipt: Some(ReceiptRef {
            seq: 4,
            hash: "ab".repeat(32),
        }),
        ids: Correlation::of_space(SpaceId::local()),
    }
}
