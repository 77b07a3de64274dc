//! Scripted servers follow their scripts, over every transport and in both eras.

mod client;

use client::{Client, Seen, TRANSPORTS};
use serde_json::{Value, json};
use switchboard_protocol::{Era, Revision};
use switchboard_test::scripted::{
    Command, Do, Fault, IdFault, Moment, On, Over, Record, Rule, Script, Tool,
};

const ERAS: [Era; 2] = [Era::Stateful, Era::Stateless];

fn echo(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The answer of the tool `echo` to the client's arguments.
fn echoed(id: &Value, era: Era) -> Value {
    let mut result = echo("{\"text\":\"hello\"}");
    if era == Era::Stateless {
        result["resultType"] = json!("complete");
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn script() -> Script {
    Script::new("plain").tool(Tool::new("echo"))
}

#[tokio::test]
async fn both_eras_work_over_every_transport() {
    for over in TRANSPORTS {
        for era in ERAS {
            let script = script().resource("test://greeting", "Hello").prompt(
                "greet",
                &["name"],
                "Greet {name}",
            );
            let mut client = Client::open(script, over, era).await;
            client.request(1, "tools/list", json!({})).await;
            assert_eq!(client.json().await["result"]["tools"][0]["name"], "echo");
            client.call(2, "echo").await;
            assert_eq!(
                client.json().await,
                echoed(&json!(2), era),
                "{over:?} {era:?}"
            );
            client
                .request(3, "resources/read", json!({"uri": "test://greeting"}))
                .await;
            assert_eq!(
                client.json().await["result"]["contents"][0]["text"],
                "Hello"
            );
            client
                .request(
                    4,
                    "prompts/get",
                    json!({"name": "greet", "arguments": {"name": "Ada"}}),
                )
                .await;
            let prompt = client.json().await;
            assert_eq!(
                prompt["result"]["messages"][0]["content"]["text"],
                "Greet Ada"
            );
            let mut methods = client.server.control.methods();
            if era == Era::Stateful {
                let handshake: Vec<String> = methods.drain(..2).collect();
                assert_eq!(handshake, ["initialize", "notifications/initialized"]);
            }
            assert_eq!(
                methods,
                ["tools/list", "tools/call", "resources/read", "prompts/get"]
            );
        }
    }
}

#[tokio::test]
async fn a_server_refuses_the_era_it_does_not_serve() {
    for over in TRANSPORTS {
        let script = script().era(Era::Stateful);
        let mut client = Client::connect(script, over, Era::Stateless).await;
        client.request(1, "server/discover", json!({})).await;
        let code = if over == Over::Http { -32000 } else { -32601 };
        assert_eq!(client.json().await["error"]["code"], code, "{over:?}");

        let script = self::script().revision(Revision::V2026_07_28);
        let mut client = Client::connect(script, over, Era::Stateful).await;
        client
            .request(1, "initialize", json!({"protocolVersion": "2025-11-25"}))
            .await;
        assert_eq!(client.json().await["error"]["code"], -32022, "{over:?}");
    }
}

/// Checks the effect of faults on one call of the tool `echo` with id 7.
async fn check_fault(faults: &[Fault], expected: impl Fn(Era, Over) -> Vec<Seen>) {
    for over in TRANSPORTS {
        for era in ERAS {
            let mut rule = Rule::on_tool("echo", faults[0].clone());
            rule.faults = faults.to_vec();
            let mut client = Client::open(script().rule(rule), over, era).await;
            // The remaining responses of the handshake over HTTP are not part of the call.
            if over == Over::Http && era == Era::Stateful {
                assert_eq!(
                    [client.next().await, client.next().await],
                    [Seen::End, Seen::End]
                );
            }
            client.call(7, "echo").await;
            let mut all = Vec::new();
            let expected = expected(era, over);
            while all.len() < expected.len() {
                all.push(client.next().await);
            }
            assert_eq!(all, expected, "{faults:?} {over:?} {era:?}");
        }
    }
}

#[tokio::test]
async fn faulty_answers_are_sent_as_scripted() {
    let answer = |era| Seen::Json(echoed(&json!(7), era));
    let with_id = |id: Value| move |era, _| vec![Seen::Json(echoed(&id, era))];
    let garbage = || Fault::GarbageBefore {
        text: "oops".to_owned(),
    };
    let after = Fault::GarbageAfter {
        text: "oops".to_owned(),
    };
    let oops = || Seen::Text("oops".to_owned());
    check_fault(&[garbage()], |era, _| vec![oops(), answer(era)]).await;
    check_fault(&[after], |era, _| vec![answer(era), oops()]).await;
    check_fault(&[Fault::Repeat { times: 2 }], |era, _| {
        vec![answer(era), answer(era)]
    })
    .await;
    check_fault(&[Fault::Trickle { bytes: 7, ms: 0 }], |era, _| {
        vec![answer(era)]
    })
    .await;
    check_fault(&[Fault::Text("not JSON".to_owned())], |_, _| {
        vec![Seen::Text("not JSON".to_owned())]
    })
    .await;
    check_fault(&[Fault::Id(IdFault::Wrong)], with_id(json!(8))).await;
    check_fault(&[Fault::Id(IdFault::Unknown)], with_id(json!(987_654_321))).await;
    check_fault(&[Fault::Id(IdFault::Float)], with_id(json!(7.0))).await;
    check_fault(&[Fault::Id(IdFault::Text)], with_id(json!("7"))).await;
    check_fault(&[Fault::Id(IdFault::Null)], with_id(json!(null))).await;
    let error = json!({"code": "ENOENT"});
    let reply = json!({"jsonrpc": "2.0", "id": 7, "error": error});
    check_fault(&[Fault::Error(error)], |_, _| {
        vec![Seen::Json(reply.clone())]
    })
    .await;
    let reply = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "hologram"}]}});
    check_fault(&[Fault::Result(reply["result"].clone())], |_, _| {
        vec![Seen::Json(reply.clone())]
    })
    .await;
    let storm = Fault::Storm {
        method: "notifications/tools/list_changed".to_owned(),
        count: 3,
    };
    let change = Seen::Json(json!({
        "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {},
    }));
    check_fault(&[storm], |era, _| {
        vec![change.clone(), change.clone(), change.clone(), answer(era)]
    })
    .await;
    check_fault(&[Fault::Abort { at: Moment::Before }], |_, _| {
        vec![Seen::End]
    })
    .await;
    check_fault(
        &[Fault::Exit {
            code: 3,
            at: Moment::Before,
        }],
        |_, _| vec![Seen::End],
    )
    .await;
}

#[tokio::test]
async fn an_answer_can_be_truncated() {
    for over in [Over::Http, Over::Sse, Over::WebSocket] {
        for era in ERAS {
            let rule = Rule::on_tool("echo", Fault::Abort { at: Moment::Half });
            let mut client = Client::open(script().rule(rule), over, era).await;
            client.call(7, "echo").await;
            loop {
                match client.next().await {
                    Seen::End => {}
                    other => panic!("a truncated answer was parsed as {other:?}"),
                }
                let records = client.server.control.records();
                if records
                    .iter()
                    .any(|record| record.method() == Some("tools/call"))
                {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_process_exits_with_the_given_code() {
    let rule = Rule::on_tool(
        "echo",
        Fault::Exit {
            code: 42,
            at: Moment::Half,
        },
    );
    let mut client = Client::open(script().rule(rule), Over::Stdio, Era::Stateful).await;
    client.call(7, "echo").await;
    let Seen::Text(half) = client.next().await else {
        panic!("a truncated line is not JSON");
    };
    assert!(half.starts_with("{\"jsonrpc\":\"2.0\",\"id\":7"), "{half}");
    assert_eq!(client.next().await, Seen::End);
    assert_eq!(client.exit_code().await, Some(42));
}

#[tokio::test]
async fn large_and_deep_answers_arrive_complete() {
    for over in TRANSPORTS {
        let rule = Rule::on_tool("echo", Fault::Oversized { bytes: 3_000_000 });
        let mut client = Client::open(script().rule(rule), over, Era::Stateless).await;
        client.call(7, "echo").await;
        let answer = client.json().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            (text.len(), answer["id"].clone()),
            (3_000_000, json!(7)),
            "{over:?}"
        );

        let rule = Rule::on_tool("echo", Fault::Deep { levels: 10_000 });
        let mut client = Client::open(script().rule(rule), over, Era::Stateless).await;
        client.call(7, "echo").await;
        // Too deep for the client's own parser, as intended.
        let Seen::Text(text) = client.next().await else {
            panic!("{over:?}: deep JSON was read");
        };
        assert_eq!(text.matches('[').count(), 10_001, "{over:?}");
    }
}

#[tokio::test]
async fn a_call_waits_at_its_gate_and_reports_progress() {
    for over in TRANSPORTS {
        for era in ERAS {
            let tool = Tool::new("slow")
                .does(Do::Progress {
                    progress: 1.0,
                    total: Some(2.0),
                    message: None,
                })
                .waits("half")
                .does(Do::Progress {
                    progress: 2.0,
                    total: Some(2.0),
                    message: None,
                })
                .replies("done");
            let mut client = Client::open(Script::new("slow").tool(tool), over, era).await;
            let params = json!({"name": "slow", "_meta": {"progressToken": "t"}});
            client.request(1, "tools/call", params).await;
            assert_eq!(
                client.json().await["params"]["progress"],
                json!(1.0),
                "{over:?} {era:?}"
            );
            client
                .server
                .control
                .wait_for_gate("half", 1)
                .await
                .unwrap();
            client.server.control.release("half");
            assert_eq!(client.json().await["params"]["progress"], json!(2.0));
            assert_eq!(client.json().await["result"]["content"][0]["text"], "done");
        }
    }
}

#[tokio::test]
async fn questions_are_requests_in_one_era_and_results_in_the_other() {
    let tool = || {
        Tool::new("ask")
            .asks("elicitation/create", json!({"message": "Name?"}))
            .asks("roots/list", json!({}))
            .does(Do::Asked)
    };
    let answers = [json!({"action": "decline"}), json!({"roots": []})];
    let texts = json!(answers).to_string();
    for over in TRANSPORTS {
        let script = || Script::new("asking").tool(tool());
        let mut client = Client::open(script(), over, Era::Stateful).await;
        client.call(1, "ask").await;
        for (answer, method) in answers.iter().zip(["elicitation/create", "roots/list"]) {
            let question = client.json().await;
            assert_eq!(question["method"], method);
            client
                .send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
                .await;
        }
        assert_eq!(client.json().await["result"], echo(&texts), "{over:?}");

        let mut client = Client::open(script(), over, Era::Stateless).await;
        client.call(1, "ask").await;
        let mut result = client.json().await["result"].take();
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["inputRequests"]["ask-1"]["method"], "roots/list");
        let responses = json!({"ask-0": answers[0], "ask-1": answers[1]});
        let params = json!({
            "name": "ask", "inputResponses": responses, "requestState": result["requestState"].take(),
        });
        client.request(2, "tools/call", params).await;
        assert_eq!(
            client.json().await["result"]["content"],
            echo(&texts)["content"],
            "{over:?}"
        );
    }
}

#[tokio::test]
async fn changes_reach_subscribers() {
    let changed = "notifications/tools/list_changed";
    for over in TRANSPORTS {
        let mut client = Client::open(script(), over, Era::Stateful).await;
        if over == Over::Http {
            client.get(None).await;
        }
        client.server.control.notify(changed, json!({}));
        assert_eq!(client.json().await["method"], changed, "{over:?}");

        let mut client = Client::open(script(), over, Era::Stateless).await;
        let params = json!({"notifications": {"toolsListChanged": true}});
        client
            .request(9, "subscriptions/listen", params.clone())
            .await;
        let first = client.json().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], params["notifications"]);
        client
            .server
            .control
            .wait_for_gate("listening-9", 1)
            .await
            .unwrap();
        client
            .server
            .control
            .notify("notifications/prompts/list_changed", json!({}));
        client.server.control.notify(changed, json!({}));
        let notification = client.json().await;
        assert_eq!(notification["method"], changed, "{over:?}");
        assert_eq!(
            notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            9
        );
        client.server.control.tell(Command::EndSubscriptions);
        assert_eq!(client.json().await["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_abandoned_and_the_connection_lives_on() {
    // Not over HTTP, where this client waits for the head of the answer.
    for over in [Over::Stdio, Over::Sse, Over::WebSocket] {
        let script = script().tool(Tool::new("slow").waits("never"));
        let mut client = Client::open(script, over, Era::Stateful).await;
        client.call(5, "slow").await;
        client
            .server
            .control
            .wait_for_gate("never", 1)
            .await
            .unwrap();
        let cancelled = json!({"requestId": 5});
        client
            .send(
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
            )
            .await;
        let abandoned = Record::Abandoned {
            request: "5".to_owned(),
        };
        client
            .server
            .control
            .wait(|records| records.contains(&abandoned).then_some(()))
            .await
            .unwrap();
        client.call(6, "echo").await;
        assert_eq!(
            client.json().await,
            echoed(&json!(6), Era::Stateful),
            "{over:?}"
        );
    }
}

#[tokio::test]
async fn lists_have_pages_and_can_be_endless() {
    let mut script = Script::new("many").generated_tools(5, 10);
    script.page_size = Some(2);
    let mut client = Client::open(script.clone(), Over::Http, Era::Stateless).await;
    let mut cursor = json!(null);
    let mut sizes = Vec::new();
    loop {
        client
            .request(1, "tools/list", json!({"cursor": cursor}))
            .await;
        let mut page = client.json().await["result"].take();
        sizes.push(page["tools"].as_array().unwrap().len());
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    let rule = Rule::on("tools/list", Fault::EndlessCursor("page-0".to_owned()));
    client.server.control.arm(rule);
    for _ in 0..3 {
        client
            .request(1, "tools/list", json!({"cursor": "page-0"}))
            .await;
        assert_eq!(client.json().await["result"]["nextCursor"], "page-0");
    }
}

#[tokio::test]
async fn tasks_advance_when_polled() {
    let tool = Tool::new("work")
        .task(1)
        .asks("roots/list", json!({}))
        .replies("worked");
    let script = Script::new("working").tool(tool);
    let mut client = Client::open(script.clone(), Over::Stdio, Era::Stateless).await;
    client.call(1, "work").await;
    let task = client.json().await["result"].take();
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working"))
    );
    let id = &task["taskId"];
    let mut seen = Vec::new();
    for round in 0..3 {
        client.request(2, "tasks/get", json!({"taskId": id})).await;
        let state = client.json().await["result"].take();
        seen.push(state["status"].clone());
        if round == 1 {
            let answers = json!({"taskId": id, "inputResponses": {"ask-0": {"roots": []}}});
            client.request(3, "tasks/update", answers).await;
            client.json().await;
        }
        if round == 2 {
            assert_eq!(state["result"], echo("worked"));
        }
    }
    assert_eq!(seen, ["working", "input_required", "completed"]);

    let mut client = Client::open(script, Over::WebSocket, Era::Stateful).await;
    client
        .request(
            1,
            "tools/call",
            json!({"name": "work", "task": {"ttl": 1000}}),
        )
        .await;
    let id = client.json().await["result"]["task"]["taskId"].take();
    client
        .request(2, "tasks/result", json!({"taskId": id}))
        .await;
    assert_eq!(
        client.json().await["result"]["content"],
        echo("worked")["content"]
    );
}

#[tokio::test]
async fn http_refuses_forgets_and_resumes() {
    let mut script = script();
    script.http.resumable_retry_ms = Some(10);
    script.http.bearer_token = None;
    let mut client = Client::open(script, Over::Http, Era::Stateful).await;
    let control = client.server.control.clone();
    // A stream that was closed early is resumed where it ended.
    control.arm(Rule::on_tool("echo", Fault::CloseStream).once());
    while client.next().await != Seen::End {}
    while client.next().await != Seen::End {}
    client.call(1, "echo").await;
    assert_eq!(client.next().await, Seen::End);
    let stream = format!("stream-{}/1", client.server.control.methods().len());
    client.get(Some(&stream)).await;
    assert_eq!(client.json().await, echoed(&json!(1), Era::Stateful));
    // Statuses are sent with their headers, before the request is handled.
    for status in [401, 403, 404, 429, 500, 503] {
        control.arm(Rule::on_tool("echo", Fault::status(status)).once());
        client.call(2, "echo").await;
        while client.next().await != Seen::Status(status) {}
    }
    control.arm(Rule::on_tool("echo", Fault::ForgetSession).once());
    client.call(3, "echo").await;
    assert_eq!(client.json().await["error"]["message"], "Session not found");
    client.call(4, "echo").await;
    assert_eq!(client.json().await["error"]["message"], "Session not found");
}

#[tokio::test]
async fn a_half_open_socket_accepts_and_never_writes() {
    for over in [Over::Http, Over::Sse, Over::WebSocket] {
        let rule = Rule::at(On::Connect, Fault::Silent);
        let server = switchboard_test::scripted::start(script().rule(rule), over)
            .await
            .unwrap();
        let url = server.url().unwrap();
        let address = url.split('/').nth(2).unwrap();
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let connected = Record::Connected { connection: 1 };
        server
            .control
            .wait(|records| records.contains(&connected).then_some(()))
            .await
            .unwrap();
        socket.writable().await.unwrap();
        socket.try_write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // It ends only with the server.
        server.control.tell(Command::Exit { code: 0 });
        assert_eq!(server.ended().await, Some(0));
        let gone = Record::Disconnected { connection: 1 };
        assert!(!server.control.records().contains(&gone));
    }
}

#[tokio::test]
async fn a_server_restarts_at_the_same_address() {
    let mut client = Client::open(script(), Over::Http, Era::Stateless).await;
    client.call(1, "echo").await;
    assert_eq!(client.json().await, echoed(&json!(1), Era::Stateless));
    client.server.down().await;
    client.call(2, "echo").await;
    while client.next().await != Seen::End {}
    client.server.up().await.unwrap();
    client.call(3, "echo").await;
    assert_eq!(client.json().await, echoed(&json!(3), Era::Stateless));
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_can_have_children_and_ignore_signals() {
    let mut script = script();
    script.process.children = 1;
    script.process.children_leave = true;
    script.process.ignore_sigterm = true;
    script.process.stdout = vec!["starting up".to_owned()];
    let mut client = Client::connect(script, Over::Stdio, Era::Stateless).await;
    assert_eq!(client.next().await, Seen::Text("starting up".to_owned()));
    client.call(1, "echo").await;
    assert_eq!(client.json().await, echoed(&json!(1), Era::Stateless));
    let kill = |process: u32, signal: &str| {
        let kill = std::process::Command::new("kill")
            .args([signal, &process.to_string()])
            .status();
        assert!(kill.unwrap().success());
    };
    kill(client.process(), "-TERM");
    let ignored = Record::Signal {
        name: "SIGTERM".to_owned(),
    };
    client
        .server
        .control
        .wait(|records| records.contains(&ignored).then_some(()))
        .await
        .unwrap();
    let records = client.server.control.records();
    let children: Vec<u32> = records
        .iter()
        .filter_map(|record| match record {
            Record::Child { process } => Some(*process),
            _ => None,
        })
        .collect();
    assert_eq!(children.len(), 1);
    kill(children[0], "-KILL");
    let (running, process) = client.hang_up();
    let ended = |records: &[Record]| records.contains(&Record::InputEnded).then_some(());
    running.control.wait(ended).await.unwrap();
    assert_eq!(process.unwrap().wait().await.unwrap().code(), Some(0));
}
