//! Records for the tests of those who print them.

use glovebox_model::{
    Access, Approval, ApprovalId, ApprovalState, Ask, ByteString, Bytes, Correlation, Count, Cpus,
    Exec, ExecId, Grade, Guarantee, Isolation, Lifetime, Limits, LimitsDemand, Millis, Mode,
    NetworkMode, PartialProfile, Permit, Profile, Reason, ReasonKind, ReceiptRef, Risk, RiskSignal,
    RuleRef, Sandbox, SandboxConfig, SandboxId, SandboxState, SecurityMode, SpaceId, Status, Tier,
    Upgrade, Usage, Writes,
};
use jiff::Timestamp;

fn bytes(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(60),
            session_ms: Millis::secs(60),
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
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(64),
            egress_connections: Count(100),
            network_ms: Millis::secs(60),
        },
        network: NetworkMode::None,
        allow_net: [].into(),
        workspace: Access::Rw,
        env_allow: ["*".to_owned()].into(),
        tier: Tier::Safe,
        security: SecurityMode::Strict,
        limits_demand: LimitsDemand::Supervised,
        approval: glovebox_model::ApprovalMode::default(),
        require: [].into(),
        backend: None,
        runtime: None,
        image: None,
    }
}

/// One that ran and failed.
pub(crate) fn exec(number: u8) -> Exec {
    let grade = |guarantee: Guarantee| match guarantee {
        Guarantee::DiskLimit => Grade::Supervised,
        Guarantee::OwnKernel => Grade::Unavailable,
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
        skill_version: None,
        skill_digest: None,
        session: None,
        cmd: bytes("sh"),
        args: vec![bytes("-c"), bytes("echo a long line; exit 3")],
        cwd: bytes("/workspace/work"),
        env_keys: vec!["LANG".parse().unwrap()],
        image: None,
        sandbox_id: None,
        status: Status::Failed,
        queue_position: None,
        abandoned: false,
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
        writes: Writes::default(),
        changes: None,
        snapshot_before: None,
        asked: PartialProfile::default(),
        ruling: None,
        approval_id: None,
        consent: None,
        backend: Some(glovebox_model::BackendName::Native),
        runtime: None,
        isolation: Isolation(Guarantee::ALL.map(|it| (it, grade(it))).into()),
        policy_snapshot: Some(profile()),
        capped: Vec::new(),
        risk: Risk::default(),
        usage: Usage {
            cpu_ms: 12,
            max_memory_bytes: 3 << 20,
            max_pids: 2,
        },
        traffic: None,
        secrets: Vec::new(),
        effects: Vec::new(),
        gates: Vec::new(),
        effect_count: None,
        preview: None,
        verdict: None,
        error: None,
        notes: Vec::new(),
        receipt: Some(ReceiptRef {
            seq: 4,
            hash: "ab".repeat(32),
        }),
        ids: Correlation::of_space(SpaceId::local()),
        vouched: glovebox_model::Vouched::People,
    }
}

/// One that was used twice and does not stand.
pub(crate) fn sandbox() -> Sandbox {
    let at = Timestamp::from_second(1_700_000_000).unwrap();
    let Profile {
        limits,
        network,
        workspace,
        ..
    } = profile();
    Sandbox {
        sandbox_id: SandboxId::from_random([7; 16]),
        name: "glovebox-ann-01234567".to_owned(),
        space_id: SpaceId::local(),
        project_id: "demo".parse().unwrap(),
        lifetime: Lifetime::Agent,
        scope: Some("ann".to_owned()),
        agent_id: None,
        config: SandboxConfig {
            backend: glovebox_model::BackendName::Native,
            image: None,
            workspace,
            network,
            limits,
            keep_root: false,
            docker: None,
        },
        asked: PartialProfile::default(),
        config_hash: "abab".to_owned(),
        state: SandboxState::Down,
        exec_id: None,
        container_id: None,
        created_at: at,
        last_used_at: at,
        uses: 2,
        trouble: None,
        ports: Vec::new(),
    }
}

/// One that waits for an answer.
pub(crate) fn approval() -> Approval {
    let at = |second| Timestamp::from_second(second).unwrap();
    Approval {
        id: ApprovalId::from_random([1; 16]),
        space_id: SpaceId::local(),
        exec_id: ExecId::from_random([2; 16]),
        ids: Correlation::of_space(SpaceId::local()),
        vouched: glovebox_model::Vouched::People,
        requested_by: "builder".to_owned(),
        requested_user: None,
        created_at: at(1000),
        expires_at: at(2000),
        state: ApprovalState::Pending,
        digest: "0".repeat(64),
        quorum: 1,
        replies: Vec::new(),
        ask: Ask {
            preview: None,
            effects: Vec::new(),
            bound: None,
            changed: Vec::new(),
            description: "run a shell script: pipes into a shell".to_owned(),
            argv: ["bash", "-lc", "ls\ncurl x | sh"].map(str::to_owned).into(),
            code_preview: "ls\ncurl x | sh".to_owned(),
            cwd: "/workspace/work".to_owned(),
            env_names: vec!["A".to_owned()],
            workspace: "scratch".to_owned(),
            backend: None,
            network: NetworkMode::None,
            tier: Tier::High,
            signals: vec![RiskSignal {
                name: "pipe_to_shell".to_owned(),
                tier: Tier::High,
                at: Some("1:1".to_owned()),
            }],
            reasons: vec![Reason {
                permit: Permit::Ask,
                kind: ReasonKind::Rule,
                text: "pipes into a shell".to_owned(),
                code: None,
                part: Some("curl x | sh".to_owned()),
                rule: Some(RuleRef {
                    file: "team.toml".to_owned(),
                    line: 3,
                }),
                rule_name: None,
                way: None,
            }],
            upgrades: vec![Upgrade {
                field: "memory".to_owned(),
                asked: "8G".to_owned(),
                given: "2G".to_owned(),
                layer: "the settings".to_owned(),
            }],
            justification: Some("the build needs it".to_owned()),
            scripts: Vec::new(),
            stdin: None,
            inputs: Vec::new(),
        },
    }
}

/// One that runs, on a terminal.
pub(crate) fn session(number: u8) -> glovebox_api::SessionInfo {
    let exec = exec(number);
    glovebox_api::SessionInfo {
        session_id: exec.exec_id,
        client_id: None,
        project_id: exec.project_id,
        command: vec![bytes("sh"), bytes("-c"), bytes("ev\x1bil; exit 3")],
        state: glovebox_api::SessionState::Running,
        status: Status::Running,
        exit_code: None,
        signal: None,
        limit_hit: None,
        started_at: exec.started_at,
        ended_at: None,
        terms: glovebox_model::SessionTerms {
            terminal: Some(glovebox_model::TerminalSize::USUAL),
            idle_timeout_ms: None,
        },
        stdout: glovebox_api::SessionStream::default(),
        stderr: glovebox_api::SessionStream::default(),
        idle_ms: 61_000,
        waiting_for_input: false,
        input_closed: false,
        approval_id: None,
        error: None,
        receipt: None,
        ids: exec.ids,
    }
}
