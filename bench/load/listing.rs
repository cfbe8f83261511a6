//! How long a page of one task's execs takes while the store grows. Rows are refusals: as long in
//! the store as any other, and made without a sandbox.

use std::sync::Arc;
use std::time::Instant;

use hyper::Method;
use serde_json::json;

use crate::client::Client;
use crate::server::Server;
use crate::{Args, Fallible};

const CLIENTS: usize = 32;
const LOOKS: usize = 200;

pub(crate) async fn run(args: &Args, rows: &[usize]) -> Fallible {
    let server = Arc::new(Server::start(args, 4, "")?);
    let mut there = 0;
    let mut table = Vec::new();
    for rows in rows {
        fill(&server, there, *rows).await?;
        there = *rows;
        table.push((*rows, look(&server).await?));
    }
    if args.json {
        let table: Vec<_> = table
            .iter()
            .map(|(rows, p50)| json!({"rows": rows, "p50_ms": p50}))
            .collect();
        println!("{}", json!({"listing": table}));
        return Ok(());
    }
    println!("{:>9} {:>9}", "rows", "p50 ms");
    for (rows, p50) in table {
        println!("{rows:>9} {p50:>9.2}");
    }
    Ok(())
}

async fn fill(server: &Arc<Server>, from: usize, to: usize) -> Fallible {
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let server = Arc::clone(server);
            tokio::spawn(async move {
                let mut client = Client::connect(&server).await?;
                for row in (from..to).filter(|row| row % CLIENTS == number) {
                    // Ten of them belong to the task that is listed, whatever the number.
                    let task = if row < 10 {
                        "listed".to_owned()
                    } else {
                        format!("t{}", row / 10)
                    };
                    let body = json!({
                        "exec": {"kind": "argv", "command": "/bin/true"},
                        "policy_overrides": {"memory": "1T"},
                        "task_ref": {"task_id": task},
                    });
                    let (status, answer) =
                        client.send(Method::POST, "/v1/execs", Some(&body)).await?;
                    if status != 403 {
                        return Err(format!("{status}: {answer}").into());
                    }
                }
                Fallible::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn look(server: &Arc<Server>) -> Fallible<f64> {
    let mut client = Client::connect(server).await?;
    let mut took = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        let since = Instant::now();
        let path = "/v1/execs?task_id=listed&limit=10";
        let (status, page) = client.send(Method::GET, path, None).await?;
        let count = page["items"].as_array().map_or(0, Vec::len);
        if count != 10 {
            return Err(format!("{status}: {count} items").into());
        }
        took.push(since.elapsed());
    }
    took.sort_unstable();
    Ok(took[LOOKS / 2].as_secs_f64() * 1000.0)
}
