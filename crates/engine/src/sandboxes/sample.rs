//! A sandbox to try things on.

use glovebox_model::{
    Access, BackendName, Bytes, Count, Cpus, Lifetime, Limits, LimitsDemand, Millis, NetworkMode,
    PartialProfile, Profile, Sandbox, SandboxConfig, SandboxId, SandboxState, SecurityMode,
    SpaceId, Tier,
};
use jiff::Timestamp;

use super::drift::hash_of;

pub(crate) fn config() -> SandboxConfig {
    SandboxConfig {
        backend: BackendName::Native,
        image: None,
        workspace: Access::Rw,
        network: NetworkMode::None,
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
        keep_root: false,
        docker: None,
    }
}

pub(crate) fn sandbox() -> Sandbox {
    let config = config();
    let now = Timestamp::now();
    Sandbox {
        sandbox_id: SandboxId::from_random([7; 16]),
        name: "glovebox-ann-01234567".to_owned(),
        space_id: SpaceId::local(),
        project_id: "p".parse().unwrap(),
        lifetime: Lifetime::Agent,
        scope: Some("ann".to_owned()),
        agent_id: None,
        config_hash: hash_of(&config),
        config,
        asked: PartialProfile::default(),
        state: SandboxState::Down,
        exec_id: None,
        container_id: None,
        created_at: now,
        last_used_at: now,
        uses: 0,
        trouble: None,
        ports: Vec::new(),
    }
}

pub(crate) fn profile() -> Profile {
    Profile {
        limits: config().limits,
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
