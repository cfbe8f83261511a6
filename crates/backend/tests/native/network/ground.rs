//! A sandbox with a way out, and somebody outside who serves it.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use glovebox_backend::{
    Cancel, Ending, Place, Prepared, Run, Sandbox, Secret, SecretFiles, Spec, WayOut,
};
use glovebox_model::{Access, NetworkMode, Profile, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;

use crate::house::{Both, PATIENCE, Told, Yard, order, profile, unbound};

pub(crate) fn networked() -> Profile {
    Profile {
        network: NetworkMode::Allowlist,
        workspace: Access::Rw,
        ..profile()
    }
}

pub(crate) fn spec(profile: &Profile) -> Spec<'_> {
    Spec {
        work: Place::Empty,
        inputs: Place::Empty,
        artifacts: Place::Empty,
        secrets: SecretFiles::PerRun,
        ..unbound(profile)
    }
}

pub(crate) fn open(yard: &Yard, profile: &Profile) -> Prepared {
    let state = yard.house.state();
    yard.native().open(&spec(profile), &state).unwrap()
}

/// Runs a program of Python's.
pub(crate) fn see(
    prepared: Prepared,
    profile: &Profile,
    code: &str,
    secrets: &[Secret<'_>],
) -> Result<Told> {
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut both = Both::default();
    let (ended, remains) = Box::new(prepared).run(Run {
        order: &order(&["python3", "-c", code], &[]),
        profile,
        watched: &[],
        stdin: None,
        terminal: None,
        secrets,
        sink: &mut both,
        cancel: &cancel,
        control: None,
    });
    drop(remains);
    ended.map(|ended| both.told(ended))
}

/// The same in a sandbox of its own whose way out is served.
pub(crate) fn served(code: &str) -> (String, Vec<String>) {
    let yard = Yard::new();
    let profile = networked();
    let mut prepared = open(&yard, &profile);
    let server = Server::start(prepared.way_out().unwrap().unwrap());
    let told = see(prepared, &profile, code, &[]).unwrap();
    let heard = server.stop();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    (told.stdout, heard)
}

/// Answers everybody with where they wanted to go.
pub(crate) struct Server {
    thread: std::thread::JoinHandle<Vec<String>>,
    stop: OwnedFd,
}

impl Server {
    pub(crate) fn start(way_out: WayOut) -> Self {
        let (stopped, stop) = rustix::pipe::pipe().unwrap();
        let thread = std::thread::spawn(move || serve(way_out, &stopped));
        Self { thread, stop }
    }

    /// What was heard, in order.
    pub(crate) fn stop(self) -> Vec<String> {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

fn serve(way_out: WayOut, stopped: &OwnedFd) -> Vec<String> {
    let WayOut {
        transparent,
        proxy,
        dns,
    } = way_out;
    let listen =
        |all: Vec<OwnedFd>| -> Vec<TcpListener> { all.into_iter().map(Into::into).collect() };
    let (transparent, proxy) = (listen(transparent), listen(proxy));
    let dns: Vec<UdpSocket> = dns.into_iter().map(Into::into).collect();
    let mut heard = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        fds.extend(transparent.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        fds.extend(proxy.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        fds.extend(dns.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        poll(&mut fds, None).unwrap();
        let is_over = !fds[0].revents().is_empty();
        // None of them blocks: what has nothing says so. Whoever did not wait for an answer may
        // still be in line when all is over.
        for listener in &transparent {
            while let Ok((stream, _)) = listener.accept() {
                let line = format!("tcp {}", original(&stream));
                answer(stream, &line);
                heard.push(line);
            }
        }
        for listener in &proxy {
            while let Ok((stream, _)) = listener.accept() {
                answer(stream, "proxy");
                heard.push("proxy".to_owned());
            }
        }
        for socket in &dns {
            let mut packet = [0; 1500];
            while let Ok((count, from)) = socket.recv_from(&mut packet) {
                let question = &packet[..count];
                heard.push(format!("dns {}", String::from_utf8_lossy(question)));
                socket.send_to(&reply(question), from).unwrap();
            }
        }
        if is_over {
            return heard;
        }
    }
}

fn original(stream: &TcpStream) -> SocketAddr {
    match stream.local_addr().unwrap().is_ipv4() {
        true => sockopt::ip_original_dst(stream).unwrap().into(),
        false => sockopt::ipv6_original_dst(stream).unwrap().into(),
    }
}

fn answer(mut stream: TcpStream, line: &str) {
    stream.set_nonblocking(false).unwrap();
    let _ = stream.write_all(format!("{line}\n").as_bytes());
}

/// 198.18.0.7 for whatever is asked with one question for an address of version 4, nothing for one
/// of version 6, and what is no question is sent back.
fn reply(question: &[u8]) -> Vec<u8> {
    if question.len() < 17 || !question.is_ascii() && question[2] & 0x80 != 0 || question[5] != 1 {
        return question.to_vec();
    }
    let name = question[12..].iter().position(|byte| *byte == 0).unwrap();
    let end = 12 + name + 5;
    let wants_v4 = question[12 + name + 1..12 + name + 3] == [0, 1];
    let mut reply = question[..end].to_vec();
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    reply[6..12].copy_from_slice(&[0, u8::from(wants_v4), 0, 0, 0, 0]);
    if wants_v4 {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 7]);
    }
    reply
}

/// Waits until the condition holds.
pub(crate) fn wait_until(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    condition()
}

pub(crate) fn has_v6() -> bool {
    std::path::Path::new("/proc/net/if_inet6").exists()
}
