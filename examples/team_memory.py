"""Give each member of a team a private memory and a shared one, and a guest less trust.

Run it: python examples/team_memory.py
"""

from zettel import Memory, Scope, acting_as
from zettel.errors import PermissionDenied

TEAM = Scope(tenant="acme")


def main() -> None:
    with Memory(":memory:", scope=Scope(tenant="acme", user="ann"), reads=[TEAM]) as memory:
        plan = memory.add("The release is on 4 June.", speaker="Ben", scope=TEAM)
        memory.add("I write the release notes.", speaker="Ann")

        print("Ann reads her own notes and those of the team:")
        for hit in memory.search("What about the release?"):
            print(f"  {hit.scope.user or 'team'}: {hit.note.content}")

        print("Ben does not see Ann's:")
        for hit in memory.search("What about the release?", scopes=[Scope(tenant="acme", user="ben"), TEAM]):
            print(f"  {hit.scope.user or 'team'}: {hit.note.content}")

        with acting_as("guest:cy", trust=0.5):
            memory.add("The release is on 1 July.", speaker="Cy", scope=TEAM)
            try:
                memory.update(plan, content="The release is on 1 July.", scope=TEAM)
            except PermissionDenied:
                print("A guest adds notes, but does not change those of the team.")
        print("Waiting for review:", [note.content for note in memory.review(scope=TEAM).notes])


if __name__ == "__main__":
    main()
