//! How much slower than a direct connection on loopback the way through the gateway is, and than
//! tinyproxy where that is installed. Everything is measured in turns in one run, and
//! the best round of each way counts.
//!
//! `cargo run --release -p glovebox-gateway --example gateway_speed`
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![expect(clippy::disallowed_methods, reason = "it speaks to what it started")]

mod client;
mod server;
mod world;

use std::time::{Duration, Instant};

use client::{Client, Tls};
use world::World;

const BODY: usize = 1_000_000;
const ROUNDS: usize = 15;
const BODIES: usize = 30;
const GREETINGS: usize = 200;

/// One way to reach a server, as a client opens it.
struct Way {
    name: &'static str,
    open: Box<dyn Fn() -> Client>,
}

fn main() {
    let world = World::start();
    let tinyproxy = world::Tinyproxy::start();
    let plain: Vec<Way> = [
        Some(world.way("direct", |it| Client::plain(it.http))),
        Some(world.way("gateway, plain HTTP", |it| {
            Client::plain_as(it.dial(80), it)
        })),
        Some(world.way("gateway, raw TCP", |it| Client::plain(it.dial(7000)).raw())),
        Some(world.way("gateway, CONNECT", |it| {
            Client::tunnel(it.proxy, "a.test:7000").raw()
        })),
        tinyproxy.as_ref().map(|proxy| {
            let (proxy, target) = (proxy.address, world.http.to_string());
            Way {
                name: "tinyproxy, CONNECT",
                open: Box::new(move || Client::tunnel(proxy, &target).raw()),
            }
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    println!("1 MB bodies, one connection, {ROUNDS} rounds of {BODIES}:");
    throughput(&plain);
    println!("a new connection, a request and a short answer, {ROUNDS} rounds of {GREETINGS}:");
    latency(&plain);

    let real = Tls::trusting(world.real_authority());
    let sandbox = Tls::trusting(world.sandbox_authority());
    let secure = vec![
        world.way("direct", {
            let real = real.clone();
            move |it| real.over(Client::plain(it.https), "b.test")
        }),
        world.way("gateway, TLS untouched", move |it| {
            real.over(Client::plain(it.dial_secure("b.test")), "b.test")
        }),
        world.way("gateway, TLS inspected", move |it| {
            sandbox.over(Client::plain(it.dial_secure("c.test")), "c.test")
        }),
    ];
    println!("the same over TLS:");
    throughput(&secure);
    latency(&secure);
}

/// The ways take turns, so that whatever else the machine does meets all of them.
fn throughput(ways: &[Way]) {
    let mut clients: Vec<Client> = ways.iter().map(|it| (it.open)()).collect();
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (client, rates) in clients.iter_mut().zip(&mut rates) {
            let start = Instant::now();
            for _ in 0..BODIES {
                assert_eq!(client.get("/body"), BODY);
            }
            rates.push((BODIES * BODY) as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    }
    let rates: Vec<f64> = rates.into_iter().map(|it| best(it, f64::max)).collect();
    for (way, rate) in ways.iter().zip(&rates) {
        println!(
            "  {:<24} {rate:>8.0} MB/s   {:>5.1} % of direct",
            way.name,
            100.0 * rate / rates[0]
        );
    }
}

fn latency(ways: &[Way]) {
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..GREETINGS {
                assert_eq!((way.open)().get("/short"), 5);
            }
            times.push(start.elapsed().as_secs_f64() / GREETINGS as f64 * 1e3);
        }
    }
    let times: Vec<f64> = times.into_iter().map(|it| best(it, f64::min)).collect();
    for (way, time) in ways.iter().zip(&times) {
        println!(
            "  {:<24} {time:>8.3} ms     {:>+6.3} ms",
            way.name,
            time - times[0]
        );
    }
}

/// Whatever else the machine does only makes a round slower.
fn best(rounds: Vec<f64>, better: fn(f64, f64) -> f64) -> f64 {
    rounds.into_iter().reduce(better).unwrap()
}

/// Long enough for anything that works.
const PATIENCE: Duration = Duration::from_secs(30);
