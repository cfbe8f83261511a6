//! Throughput and latency of `/bin/true`, each exec in a fresh sandbox, the ledger durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;

use crate::client::Client;
use crate::server::Server;
use crate::{Args, Fallible};

pub async fn run(args: &Args, clients: &[usize], requests: usize, concurrent: u32) -> Fallible {
    let server = Arc::new(Server::start(args, concurrent.max(1))?);
    Client::connect(&server)
        .await?
        .settings(&json!({"max_concurrent_execs": concurrent, "max_queued": 1024}))
        .await?;
    // Files, pages and connections that the first ones make.
    measure(&server, 2, 20).await?;
    let mut rows = Vec::new();
    for clients in clients {
        rows.push(measure(&server, *clients, requests).await?);
    }
    if args.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        println!("{}", json!({"concurrent": concurrent, "execs": rows}));
        return Ok(());
    }
    println!(
        "{:>7} {:>8} {:>9} {:>9} {:>9} {:>9} {:>14}",
        "clients", "execs", "exec/s", "p50 ms", "p99 ms", "p99/p50", "server cpu ms"
    );
    for row in rows {
        println!(
            "{:>7} {:>8} {:>9.0} {:>9.2} {:>9.2} {:>9.1} {:>14.2}",
            row.clients,
            row.execs,
            row.per_second,
            row.p50,
            row.p99,
            row.p99 / row.p50,
            row.cpu
        );
    }
    Ok(())
}

struct Row {
    clients: usize,
    execs: usize,
    per_second: f64,
    p50: f64,
    p99: f64,
    /// Of the server process, for each exec.
    cpu: f64,
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "clients": self.clients,
            "execs": self.execs,
            "per_second": self.per_second,
            "p50_ms": self.p50,
            "p99_ms": self.p99,
            "server_cpu_ms": self.cpu,
        })
    }
}

async fn measure(server: &Arc<Server>, clients: usize, requests: usize) -> Fallible<Row> {
    let left = Arc::new(AtomicUsize::new(requests));
    let cpu = server.cpu_seconds();
    let since = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(client(Arc::clone(server), Arc::clone(&left))))
        .collect();
    let mut took = Vec::with_capacity(requests);
    for task in tasks {
        took.extend(task.await??);
    }
    let wall = since.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |part: f64| -> f64 {
        let place = ((took.len() as f64 * part).ceil() as usize).clamp(1, took.len()) - 1;
        took[place].as_secs_f64() * 1000.0
    };
    Ok(Row {
        clients,
        execs: took.len(),
        per_second: took.len() as f64 / wall,
        p50: at(0.5),
        p99: at(0.99),
        cpu: (server.cpu_seconds() - cpu) * 1000.0 / took.len() as f64,
    })
}

async fn client(server: Arc<Server>, left: Arc<AtomicUsize>) -> Fallible<Vec<Duration>> {
    let mut client = Client::connect(&server).await?;
    let body = json!({"exec": {"kind": "argv", "command": "/bin/true"}});
    let mut took = Vec::new();
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
    {
        let since = Instant::now();
        let (status, exec) = client.send(Method::POST, "/v1/execs", Some(&body)).await?;
        if exec["status"] != "succeeded" {
            return Err(format!("{status}: {exec}").into());
        }
        took.push(since.elapsed());
    }
    Ok(took)
}
