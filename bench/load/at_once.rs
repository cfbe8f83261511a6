//! Many sandboxes at one instant: every program waits until all are there, which we see in /proc.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;

use crate::client::Client;
use crate::server::Server;
use crate::{Args, Fallible};

/// A number that no other process has as its argument.
const MARK: &str = "31536001.125";

pub(crate) async fn run(args: &Args, sandboxes: usize) -> Fallible {
    let most = u32::try_from(sandboxes)?;
    let server = Arc::new(Server::start(args, most, "")?);
    let mut client = Client::connect(&server).await?;
    client
        .settings(&json!({"max_concurrent_execs": most, "max_queued": 4}))
        .await?;
    let since = Instant::now();
    let mut ids = Vec::new();
    // Each stays until it is told to go by its own file: none can end before all were counted.
    let body = json!({
        "exec": {"kind": "argv", "command": "sleep", "args": [MARK]},
        "policy_overrides": {"timeout": "60s", "memory": "32M"},
        "wait": false,
    });
    for _ in 0..sandboxes {
        let (status, exec) = client.send(Method::POST, "/v1/execs", Some(&body)).await?;
        let id = exec["exec_id"]
            .as_str()
            .ok_or(format!("{status}: {exec}"))?;
        ids.push(id.to_owned());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut alive = count();
    while alive < sandboxes && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
        alive = count();
    }
    let took = since.elapsed();
    for id in &ids {
        client
            .send(Method::POST, &format!("/v1/execs/{id}/cancel"), None)
            .await?;
    }
    let mut canceled = 0;
    for id in &ids {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (_, exec) = client
                .send(Method::GET, &format!("/v1/execs/{id}"), None)
                .await?;
            if exec["status"] == "canceled" {
                canceled += 1;
                break;
            }
            if exec["status"] != "running" || Instant::now() > deadline {
                return Err(format!("{id} is {}", exec["status"]).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    if args.json {
        println!(
            "{}",
            json!({"asked": sandboxes, "alive": alive, "ended": canceled, "seconds": took.as_secs_f64()})
        );
    } else {
        println!(
            "{sandboxes} asked for, {alive} alive at one instant after {:.2} s, {canceled} ended as told",
            took.as_secs_f64()
        );
    }
    if alive != sandboxes {
        return Err("not all of them were there at once".into());
    }
    Ok(())
}

/// Processes that are our programs, seen from the host.
fn count() -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .eq([b"sleep", MARK.as_bytes(), b""])
        })
        .count()
}
