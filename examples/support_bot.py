"""Answer customers from their own earlier tickets and current facts, with a memory per customer.

Run it: python examples/support_bot.py

The bot prints the prompt that a model would get. With a model, send it instead of printing it.
"""

from zettel import Memory, Scope

INSTRUCTIONS = "You are the support bot of a shop for boats. Use what you know of this customer."


def customer(id: str) -> Scope:
    """Return the scope of a customer; the id comes from the login, never from the message."""
    return Scope(tenant="boatshop", user=id)


def prompt(memory: Memory, id: str, question: str) -> str:
    known = memory.context(question, max_tokens=200, scope=customer(id))
    return f"{INSTRUCTIONS}\n\n{known}\n\nCustomer: {question}"


def main() -> None:
    with Memory(":memory:") as memory:
        memory.add_messages(
            [
                {"role": "user", "content": "My mast is 12 metres tall. Which sail fits?"},
                {"role": "assistant", "content": "For 12 metres take the mainsail M-12."},
                {"role": "user", "content": "I live in Bergen."},
            ],
            session="ticket-1", occurred_at="2024-05-01T09:00Z", scope=customer("ann"),
        )  # fmt: skip
        memory.add("I moved to Oslo.", role="user", session="ticket-2", occurred_at="2024-08-01", scope=customer("ann"))
        memory.add("My mast is 8 metres tall.", role="user", session="ticket-3", scope=customer("ben"))
        memory.flush()

        print(prompt(memory, "ann", "Which mainsail fits my mast, and where do I live?"))
        print()
        print(prompt(memory, "ben", "Which mainsail fits my mast, and where do I live?"))


if __name__ == "__main__":
    main()
