"""An agent that answers with the help of a server. Set ANTHROPIC_API_KEY or OPENAI_API_KEY."""

import sys

from switchboard_mcp import Agent, ApprovalQuestion


def approve(question: ApprovalQuestion) -> bool:
    print(f"allowed: {question['tool']}")
    return True


with Agent.create(".", on_approval=approve) as agent:
    session = agent.session(".")
    # For example: python agent.py npx -y @modelcontextprotocol/server-filesystem .
    session.add_mcp_server("files", command=sys.argv[1], args=sys.argv[2:])
    for event in session.stream("Which folders can you read?"):
        if event.type == "text":
            print(event.text, end="")
    print()
