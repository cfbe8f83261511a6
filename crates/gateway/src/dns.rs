//! The sandbox's DNS. Nothing that is asked here leaves the machine: a name gets an address of
//! its own, whether or not anything may be reached by it, so that the connection can be refused
//! with a reason.

use std::time::Duration;

use glovebox_egress::Host;
use glovebox_model::{Approach, NetCode, Spoken};
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep_until, timeout};

use crate::denial::Denial;
use crate::exec_session::{Term, no_network};
use crate::gateway::Inside;
use crate::names::{Given, Standing, Synthetic};
use crate::previewed::unknown_name;
use crate::record::Asked;
use crate::simulate::Seen;

pub(crate) const PORT: u16 = 53;
/// A name keeps its address anyway; the answer is short-lived so that a refusal is too.
const TTL_SECONDS: u32 = 30;
/// No question is longer; an answer has one name and one address.
const MESSAGE_MOST: usize = 4096;
/// Answers in a second. Above it questions wait, and the kernel drops what does not fit.
const RATE_MOST: u32 = 2_000;
const WINDOW: Duration = Duration::from_secs(1);
const TCP_QUESTIONS_MOST: usize = 256;
const TCP_IDLE: Duration = Duration::from_secs(10);

#[expect(
    clippy::disallowed_methods,
    reason = "answers whoever asked, inside the sandbox"
)]
pub(crate) async fn serve_udp(inside: &Inside, socket: UdpSocket) {
    let mut buffer = vec![0; MESSAGE_MOST];
    let (mut window, mut count) = (Instant::now(), 0);
    loop {
        // An error here is a peer's that went away; the socket itself stays.
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else {
            sleep_until(Instant::now() + Duration::from_millis(1)).await;
            continue;
        };
        if window.elapsed() >= WINDOW {
            (window, count) = (Instant::now(), 0);
        }
        count += 1;
        if count > RATE_MOST {
            sleep_until(window + WINDOW).await;
        }
        if let Some(answer) = answer(inside, &buffer[..length]) {
            let _ = socket.send_to(&answer, peer).await;
        }
    }
}

pub(crate) async fn serve_tcp(inside: &Inside, mut stream: TcpStream) {
    // A connection on which nothing is asked was made all the same.
    let mut begun = true;
    for _ in 0..TCP_QUESTIONS_MOST {
        match timeout(TCP_IDLE, one_tcp(inside, &mut stream, &mut begun)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false) | Err(_)) | Err(_) => break,
        }
    }
    if begun {
        untold(inside);
    }
}

/// `begun` says whether something came that is not told yet.
async fn one_tcp(
    inside: &Inside,
    stream: &mut TcpStream,
    begun: &mut bool,
) -> std::io::Result<bool> {
    let high = stream.read_u8().await?;
    *begun = true;
    let length = usize::from(u16::from_be_bytes([high, stream.read_u8().await?]));
    if length > MESSAGE_MOST {
        return Ok(false);
    }
    let mut question = vec![0; length];
    stream.read_exact(&mut question).await?;
    *begun = false;
    let Some(answer) = answer(inside, &question) else {
        return Ok(false);
    };
    let Ok(length) = u16::try_from(answer.len()) else {
        return Ok(false);
    };
    let framed = [&length.to_be_bytes()[..], &answer].concat();
    stream.write_all(&framed).await?;
    Ok(true)
}

/// None where no answer is due: to what is no question at all.
pub(crate) fn answer(inside: &Inside, question: &[u8]) -> Option<Vec<u8>> {
    // Without an id there is nobody to answer; a response that is answered makes a loop.
    let Some(&[high, low, _]) = question
        .first_chunk()
        .filter(|it: &&[u8; 3]| it[2] & 0x80 == 0)
    else {
        untold(inside);
        return None;
    };
    let id = u16::from_be_bytes([high, low]);
    let Ok(asked) = Message::from_vec(question) else {
        untold(inside);
        return plain(id, OpCode::Query, ResponseCode::FormErr);
    };
    let op_code = asked.metadata.op_code;
    if asked.metadata.message_type != MessageType::Query || op_code != OpCode::Query {
        refuse(inside, &asked.queries, "only questions are answered");
        return plain(id, op_code, ResponseCode::NotImp);
    }
    let [query] = asked.queries.as_slice() else {
        refuse(inside, &asked.queries, "one name is asked for at a time");
        return plain(id, op_code, ResponseCode::FormErr);
    };
    let mut response = Message::response(id, op_code);
    response.metadata.recursion_desired = asked.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.add_query(query.clone());
    response.metadata.response_code = match query.query_class() {
        DNSClass::IN => match name(inside, &query.name().to_ascii(), query.query_type()) {
            Ok(address) => {
                let data = match query.query_type() {
                    RecordType::A => Some(RData::A(A(address.v4))),
                    RecordType::AAAA => Some(RData::AAAA(AAAA(address.v6))),
                    _ => None,
                };
                if let Some(data) = data {
                    let record = Record::from_rdata(query.name().clone(), TTL_SECONDS, data);
                    response.add_answer(record);
                }
                ResponseCode::NoError
            }
            Err(code) => code,
        },
        _ => {
            let why = "only questions of the class `IN` are answered";
            refuse(inside, std::slice::from_ref(query), why);
            ResponseCode::Refused
        }
    };
    response.to_vec().ok()
}

/// A message that no name gets an address by. What it asks for is told as any name is.
fn refuse(inside: &Inside, queries: &[Query], why: &str) {
    if queries.is_empty() {
        untold(inside);
    }
    for query in queries {
        let text = query.name().to_ascii();
        let name = match Host::parse(&text) {
            Ok(host) => host.to_string(),
            Err(_) => shown(&text),
        };
        let asked = Asked::new(Approach::Dns, Spoken::Dns, &name, PORT);
        let denial = unknown(&name, why);
        inside.record.refuse(&asked, &denial);
        simulated(inside, &asked, Some(&denial), query.query_type());
    }
}

/// Each time, however often it is asked for.
fn simulated(inside: &Inside, asked: &Asked, denial: Option<&Denial>, kind: RecordType) {
    if inside.term().is_some_and(|it| it.play().is_some()) {
        let mut seen = Seen::new(asked, denial);
        seen.record_type = Some(kind.to_string());
        inside.record.simulated(&seen);
    }
}

/// What came and has no name by which it could be told of.
fn untold(inside: &Inside) {
    if inside.term().is_some_and(|it| it.play().is_some()) {
        inside.record.untold();
    }
}

fn plain(id: u16, op_code: OpCode, code: ResponseCode) -> Option<Vec<u8>> {
    Message::error_msg(id, op_code, code).to_vec().ok()
}

/// The address of a name, or why it has none, which is told once for each name, and each time in
/// a simulation.
fn name(inside: &Inside, text: &str, kind: RecordType) -> Result<Synthetic, ResponseCode> {
    let term = inside.term();
    let found = find(inside, term.as_deref(), text);
    let asked = Asked::new(Approach::Dns, Spoken::Dns, &found.name, PORT);
    match (&found.denial, &found.given) {
        (Some(denial), _) => inside.record.refuse(&asked, denial),
        (None, Ok(Given::New(_))) => inside.record.let_through(&asked),
        (None, _) => {}
    }
    simulated(inside, &asked, found.denial.as_ref(), kind);
    match found.given? {
        Given::New(address) | Given::Known(address) => Ok(address),
        Given::Full => Err(ResponseCode::NXDomain),
    }
}

/// What is said to a name. In a simulation it may be refused by policy and have an address.
struct Found {
    name: String,
    denial: Option<Denial>,
    given: Result<Given, ResponseCode>,
}

fn find(inside: &Inside, term: Option<&Term>, text: &str) -> Found {
    let host = match Host::parse(text) {
        Ok(host) if host.name().is_some() => host,
        Ok(_) | Err(_) => {
            let name = shown(text);
            let denial = unknown(&name, "it is no host name");
            return Found {
                name,
                denial: Some(denial),
                given: Err(ResponseCode::NXDomain),
            };
        }
    };
    let name = host.name().unwrap_or_default().to_owned();
    let refused = |denial, code| Found {
        name: name.clone(),
        denial: Some(denial),
        given: Err(code),
    };
    let Some(term) = term else {
        return refused(no_network(&name, PORT), ResponseCode::Refused);
    };
    let standing = term.standing(&host);
    let denial = match decide(term, &host, standing) {
        Ok(()) => None,
        Err((denial, code)) => match goes_on(term, &name, code) {
            true => Some(denial),
            false => return refused(denial, code),
        },
    };
    match inside.names.give(&host, standing) {
        Given::Full => {
            let why = "this sandbox has asked for too many names";
            refused(unknown(&name, why), ResponseCode::NXDomain)
        }
        given => Found {
            name,
            denial,
            given: Ok(given),
        },
    }
}

/// What is no host name, short and in one line.
fn shown(text: &str) -> String {
    let text = text.trim_end_matches('.');
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

fn unknown(name: &str, why: &str) -> Denial {
    Denial::of(NetCode::DnsDenied, name, PORT, why)
}

fn decide(term: &Term, host: &Host, standing: Standing) -> Result<(), (Denial, ResponseCode)> {
    let name = host.name().unwrap_or_default();
    term.state(name, PORT)
        .map_err(|denial| (denial, ResponseCode::Refused))?;
    if term.play().is_some() && !term.has_network() {
        let denial = Denial::of(NetCode::NetModeNone, name, PORT, "this run has no network");
        return Err((denial, ResponseCode::Refused));
    }
    if term.preview().is_some_and(|it| !it.knows(name)) {
        return Err((unknown_name(name), ResponseCode::Refused));
    }
    match (standing, host.check_name()) {
        (Standing::Any, Err(refusal)) => {
            Err((unknown(name, &refusal.message), ResponseCode::NXDomain))
        }
        _ => Ok(()),
    }
}

/// A simulated program gets its address where only policy is against it, and where somebody
/// answers in the name of a host that does not exist.
fn goes_on(term: &Term, name: &str, code: ResponseCode) -> bool {
    let Some(play) = term.play().filter(|_| !term.is_closed()) else {
        return false;
    };
    code == ResponseCode::Refused || play.simulated.answers_for(name)
}
