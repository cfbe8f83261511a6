//! Throughput and latency of `/bin/true`, the ledger durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::client::Client;
use crate::mode::Mode;
use crate::server::Server;
use crate::{Args, Fallible};

/// How long a pool may take to fill.
const FILLING: Duration = Duration::from_secs(30);

pub(crate) struct Load {
    pub(crate) mode: Mode,
    pub(crate) clients: Vec<usize>,
    /// For each number of clients.
    pub(crate) requests: usize,
    /// Execs that run at once.
    pub(crate) concurrent: u32,
    /// Agents with a sandbox each.
    pub(crate) agents: usize,
    /// Sandboxes in the pool, and execs of one burst.
    pub(crate) burst: usize,
}

pub(crate) async fn run(args: &Args, load: &Load) -> Fallible {
    let config = load.mode.config(load.burst);
    let server = Server::start(args, load.concurrent.max(1), &config)?;
    let server = Arc::new(server);
    Client::connect(&server)
        .await?
        .settings(&json!({"max_concurrent_execs": load.concurrent, "max_queued": 1024}))
        .await?;
    let mut rows = Vec::new();
    if load.mode == Mode::Burst {
        bursts(&server, load, 2).await?;
        rows.push(bursts(&server, load, load.requests.div_ceil(load.burst)).await?);
    } else {
        // Files, pages and connections that the first ones make, and every agent's sandbox.
        measure(&server, load, 2 * load.agents, 20 * load.agents).await?;
        for clients in &load.clients {
            rows.push(measure(&server, load, *clients, load.requests).await?);
        }
    }
    if args.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        let (mode, concurrent) = (load.mode.name(), load.concurrent);
        println!(
            "{}",
            json!({"mode": mode, "concurrent": concurrent, "execs": rows})
        );
        return Ok(());
    }
    println!(
        "{:>5} {:>7} {:>6} {:>7} {:>8} {:>8} {:>8} {:>14} {:>12} {:>6} {:>6}",
        "mode",
        "clients",
        "execs",
        "exec/s",
        "p50 ms",
        "p99 ms",
        "p99/p50",
        "server cpu ms",
        "host cpu ms",
        "hits",
        "misses"
    );
    for row in rows {
        println!(
            "{:>5} {:>7} {:>6} {:>7.0} {:>8.2} {:>8.2} {:>8.1} {:>14.2} {:>12.2} {:>6} {:>6}",
            load.mode.name(),
            row.clients,
            row.execs,
            row.per_second,
            row.p50,
            row.p99,
            row.p99 / row.p50,
            row.server_cpu,
            row.host_cpu,
            row.hits,
            row.misses
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
    /// Of the server process, for each exec, in milliseconds.
    server_cpu: f64,
    /// Of everything on this host while it went on: sandboxes, the kernel, the clients and whoever
    /// else is there.
    host_cpu: f64,
    hits: u64,
    misses: u64,
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "clients": self.clients,
            "execs": self.execs,
            "per_second": self.per_second,
            "p50_ms": self.p50,
            "p99_ms": self.p99,
            "p99_of_p50": self.p99 / self.p50,
            "server_cpu_ms": self.server_cpu,
            "host_cpu_ms": self.host_cpu,
            "pool_hits": self.hits,
            "pool_misses": self.misses,
        })
    }
}

/// What is counted from outside, before and after.
struct Reading {
    server: f64,
    host: f64,
    hits: u64,
    misses: u64,
}

impl Reading {
    async fn take(server: &Server) -> Fallible<Self> {
        let pool = pool(&mut Client::connect(server).await?).await?;
        Ok(Self {
            server: server.cpu_seconds(),
            host: host_cpu_seconds(),
            hits: pool["hits"].as_u64().unwrap_or(0),
            misses: pool["misses"].as_u64().unwrap_or(0),
        })
    }

    /// `busy` is the time in which execs were under way.
    fn row(&self, now: &Self, clients: usize, mut took: Vec<Duration>, busy: Duration) -> Row {
        took.sort_unstable();
        let at = |part: f64| -> f64 {
            let place = ((took.len() as f64 * part).ceil() as usize).clamp(1, took.len()) - 1;
            took[place].as_secs_f64() * 1000.0
        };
        let each = |seconds: f64| seconds * 1000.0 / took.len() as f64;
        Row {
            clients,
            execs: took.len(),
            per_second: took.len() as f64 / busy.as_secs_f64(),
            p50: at(0.5),
            p99: at(0.99),
            server_cpu: each(now.server - self.server),
            host_cpu: each(now.host - self.host),
            hits: now.hits - self.hits,
            misses: now.misses - self.misses,
        }
    }
}

async fn measure(
    server: &Arc<Server>,
    load: &Load,
    clients: usize,
    requests: usize,
) -> Fallible<Row> {
    let left = Arc::new(AtomicUsize::new(requests));
    let before = Reading::take(server).await?;
    let since = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|number| {
            let body = load.mode.request(number % load.agents);
            tokio::spawn(client(Arc::clone(server), Arc::clone(&left), body))
        })
        .collect();
    let mut took = Vec::with_capacity(requests);
    for task in tasks {
        took.extend(task.await??);
    }
    let busy = since.elapsed();
    let after = Reading::take(server).await?;
    Ok(before.row(&after, clients, took, busy))
}

async fn client(
    server: Arc<Server>,
    left: Arc<AtomicUsize>,
    body: Value,
) -> Fallible<Vec<Duration>> {
    let mut client = Client::connect(&server).await?;
    let mut took = Vec::new();
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
    {
        took.push(once(&mut client, &body).await?);
    }
    Ok(took)
}

async fn once(client: &mut Client, body: &Value) -> Fallible<Duration> {
    let since = Instant::now();
    let (status, exec) = client.send(Method::POST, "/v1/execs", Some(body)).await?;
    if exec["status"] != "succeeded" {
        return Err(format!("{status}: {exec}").into());
    }
    Ok(since.elapsed())
}

/// Some bursts, each when the pool is full. Only the bursts count as time.
async fn bursts(server: &Arc<Server>, load: &Load, count: usize) -> Fallible<Row> {
    let mut guard = Client::connect(server).await?;
    let begin = Arc::new(Barrier::new(load.burst + 1));
    let end = Arc::new(Barrier::new(load.burst + 1));
    let tasks: Vec<_> = (0..load.burst)
        .map(|number| {
            let (server, begin, end) = (Arc::clone(server), Arc::clone(&begin), Arc::clone(&end));
            let body = load.mode.request(number);
            tokio::spawn(async move {
                let mut client = Client::connect(&server).await?;
                let mut took = Vec::new();
                for _ in 0..count {
                    begin.wait().await;
                    let one = once(&mut client, &body).await;
                    // Whatever became of it, the others wait here.
                    end.wait().await;
                    took.push(one?);
                }
                Fallible::Ok(took)
            })
        })
        .collect();
    let before = Reading::take(server).await?;
    let mut busy = Duration::ZERO;
    for _ in 0..count {
        fill(&mut guard, load.burst).await?;
        begin.wait().await;
        let since = Instant::now();
        // One whose exec failed is missing in the next burst.
        tokio::time::timeout(FILLING, end.wait())
            .await
            .map_err(|_| "an exec of a burst failed")?;
        busy += since.elapsed();
    }
    let after = Reading::take(server).await?;
    let mut took = Vec::with_capacity(count * load.burst);
    for task in tasks {
        took.extend(task.await??);
    }
    Ok(before.row(&after, load.burst, took, busy))
}

async fn fill(client: &mut Client, size: usize) -> Fallible {
    let deadline = Instant::now() + FILLING;
    loop {
        let pool = pool(client).await?;
        if pool["idle"].as_u64() >= Some(size as u64) && pool["building"] == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("the pool does not fill: {pool}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn pool(client: &mut Client) -> Fallible<Value> {
    let (status, pool) = client.send(Method::GET, "/v1/pool", None).await?;
    if status != 200 {
        return Err(format!("pool: {status} {pool}").into());
    }
    Ok(pool)
}

/// Of all processors together, whoever worked: all but idle and waiting for disks.
fn host_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = all
        .split_whitespace()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let sum = |fields: &[usize]| -> f64 { fields.iter().filter_map(|at| ticks.get(*at)).sum() };
    // User, nice, system, then interrupts hard and soft.
    sum(&[0, 1, 2, 5, 6]) / 100.0
}
