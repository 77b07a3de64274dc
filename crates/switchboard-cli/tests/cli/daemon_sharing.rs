//! One process for each distinct server, and one per client for servers that must not be shared.

use std::path::Path;

use serde_json::json;

use crate::daemon::{Client, starts};
use crate::servers::{has_exited, log, machine, received};
use crate::support::{TestContext, eventually};

/// The processes of a server that run.
fn running(context: &TestContext, server: &str) -> usize {
    let text = std::fs::read_to_string(log(context, server)).unwrap_or_default();
    let processes = text.lines().filter_map(|line| line.strip_prefix("pid "));
    processes
        .filter(|process| Path::new("/proc").join(process).exists())
        .count()
}

/// A client that works in another project.
fn client_in(context: &TestContext, project: &str) -> Client {
    let folder = context.path(project);
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    Client::start(context, &["connect", "--cwd", folder.to_str().unwrap()])
}

fn says(client: &mut Client, text: &str) {
    let answer = client.echo(text);
    assert_eq!(answer["result"]["content"][0]["text"], *text, "{answer}");
}

#[test]
fn twenty_clients_share_thirty_processes_that_end_when_idle() {
    let names: Vec<String> = (0..29).map(|number| format!("server{number}")).collect();
    let idle = ";idle_shutdown_sec = 2";
    let mut servers = vec![("alpha", idle)];
    servers.extend(names.iter().map(|name| (name.as_str(), idle)));
    let context = machine(&servers);
    let mut clients: Vec<Client> = (0..20)
        .map(|_| Client::start(&context, &["connect"]))
        .collect();
    for client in &mut clients {
        let list = client.request("tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let first_of_each =
            |tool: &&serde_json::Value| tool["name"].as_str().unwrap().ends_with("__echo");
        assert_eq!(tools.iter().filter(first_of_each).count(), 30);
    }
    for (server, _) in &servers {
        assert_eq!(starts(&context, server), 1, "{server}");
    }
    // The clients are still there.
    eventually("the end of the servers", || {
        servers
            .iter()
            .all(|(server, _)| has_exited(&context, server))
    });
    let first = clients.first_mut().unwrap();
    says(first, "again");
    assert_eq!(starts(&context, "alpha"), 2);
    for client in clients {
        assert_eq!(client.end(), Some(0));
    }
    context.line("down");
}

#[test]
fn projects_share_a_server_that_does_not_depend_on_their_folder() {
    let folder = std::env::temp_dir();
    let set = format!(";cwd = {:?}", folder.display().to_string());
    let context = machine(&[("alpha", &set), ("beta", "")]);
    let mut one = client_in(&context, "one");
    let mut two = client_in(&context, "two");
    for client in [&mut one, &mut two] {
        client.request("tools/list", &json!({}));
        says(client, "hello");
    }
    assert_eq!(
        (starts(&context, "alpha"), starts(&context, "beta")),
        (1, 2)
    );
    // The server stays as long as one of them uses it, and is replaced for both if it ends.
    assert_eq!(one.end(), Some(0));
    says(&mut two, "still");
    let params = json!({"name": "mcp__alpha__die", "arguments": {}});
    two.request("tools/call", &params);
    says(&mut two, "new");
    assert_eq!(running(&context, "alpha"), 1);
    assert_eq!(two.end(), Some(0));
    assert_eq!(context.line("down").code, 0);
    eventually("the end of the servers", || {
        has_exited(&context, "alpha") && has_exited(&context, "beta")
    });
}

#[test]
fn a_project_does_not_see_the_servers_of_another() {
    let context = machine(&[("alpha", "")]);
    let mut file = context.read("config/mcp.toml");
    file = file.replace("mcp_servers.alpha", "mcp_servers.gamma");
    context.write("one/.switchboard.local.toml", &file);
    let one = client_in(&context, "one");
    let mut two = client_in(&context, "two");
    let has_gamma = |client: &mut Client| {
        let list = client.request("tools/list", &json!({}));
        list.to_string().contains("mcp__gamma__")
    };
    assert!(!has_gamma(&mut two));
    let params = json!({"name": "mcp__gamma__echo", "arguments": {"text": "x"}});
    let answer = two.request("tools/call", &params);
    assert!(answer["result"]["content"][0]["text"] != "x", "{answer}");
    one.end();
    two.end();
    context.line("down");
}

#[test]
fn a_server_that_is_never_shared_has_one_process_per_client() {
    let context = machine(&[("alpha", ";shared = \"never\"")]);
    let mut one = Client::start(&context, &["connect"]);
    let mut two = Client::start(&context, &["connect"]);
    for client in [&mut one, &mut two] {
        says(client, "first");
        says(client, "second");
    }
    // One for the lists, and one for each client.
    assert_eq!(running(&context, "alpha"), 3);
    assert_eq!(one.end(), Some(0));
    eventually("the end of the process of the first client", || {
        running(&context, "alpha") == 2
    });
    says(&mut two, "third");
    assert_eq!(starts(&context, "alpha"), 3);
    two.end();
    context.line("down");
}

#[test]
fn a_server_that_asks_outside_of_calls_is_no_longer_shared_and_that_is_remembered() {
    let context = machine(&[("alpha", "curious")]);
    let asked = |count: usize| {
        let questions = received(&context, "alpha");
        let questions = questions.iter().filter(|line| line.starts_with("roots "));
        questions.count() >= count
    };
    let mut one = Client::start(&context, &["connect"]);
    one.request("tools/list", &json!({}));
    eventually("the question", || asked(1));
    let mut two = Client::start(&context, &["connect"]);
    says(&mut one, "one");
    says(&mut two, "two");
    assert_eq!(starts(&context, "alpha"), 3);
    one.end();
    two.end();
    assert_eq!(context.line("down").code, 0);
    eventually("the end of the server", || has_exited(&context, "alpha"));
    // The next daemon knows.
    let mut one = Client::start(&context, &["connect"]);
    says(&mut one, "again");
    assert_eq!(running(&context, "alpha"), 2);
    one.end();
    context.line("down");
}
