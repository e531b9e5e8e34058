"""Which statements replace which: by rules for plain English, on examples of our own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.changes import DOUBTED_CONFIDENCE, Change, change_links, change_of, doubted, in_time, may_change
from zettel.model import Kind, LinkType, Note

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def _note(seq: int, content: str, *, role: str | None = "Ann", day: int | None = None, **fields: object) -> Note:
    when = None if day is None else START + timedelta(days=day)
    told: dict[str, object] = {
        "id": f"n_{seq}", "event_ids": (f"e_{seq}",), "seq": seq, "recorded_at": START, "content": content,
        "role": role, "occurred_at": when, "valid_from": when,
    }  # fmt: skip
    return Note.model_validate(told | fields)


def _change(before: str, after: str, *, dated: bool = True) -> Change | None:
    days = (0, 100) if dated else (None, None)
    return change_of(_note(1, before, day=days[0]), _note(2, after, day=days[1]), dated)


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(before, after) for before, _, after in (line.partition(" => ") for line in text.strip().splitlines())]


REPLACED = _pairs("""
I live in Bergen, above a bakery. => I moved to Oslo on Monday!
We've been living in a flat in Lyon. => We just moved to Marseille.
Dana's based in Porto. => Dana relocated to Lisbon for good.
Ann lives in Bergen. => Ann lives in Oslo now.
I live in Bergen. => I no longer live in Bergen.
I live in Bergen. => Big news: we've settled into our new place in Trondheim.
My sister lives in Rome. => My sister has moved to Turin.
I work as a nurse at St Mary's. => I started at Mercy Hospital last week.
I work at Northwind. => I quit Northwind and joined Contoso.
Priya works for Acme as a designer. => Priya now works for Globex.
I'm a teacher at the local school. => I left teaching; I now work as a translator.
Ben is a waiter. => Ben got a job as a barista at Blue Cup.
My phone number is 555-0142-778. => My new number is 555-0199-332.
You can reach me at ann@old.com. => Please use ann@new.org from now on.
Ann's email is ann@old.com. => Ann's email address has changed to ann@new.org.
The dentist appointment is on Tuesday at 3pm. => The dentist pushed my appointment to Friday.
I have a dentist appointment on Tuesday at 3 pm. => My dentist appointment was rescheduled to Friday at 10 am.
The standup is at 9:30. => From now on the standup is at 10:15.
Our weekly sync is on Mondays. => We moved the weekly sync to Thursdays.
The launch is on 14 May. => The launch has been postponed to 2 June.
The workshop takes place in room 12. => The workshop moved to room 7.
My favourite tea is Earl Grey. => My favourite tea is rooibos now.
My favourite tea is Earl Grey. => Rooibos has become my favourite tea.
Ben's favourite band is Wilco. => Ben's new favourite band is Low.
I'm dating Marco. => Marco and I broke up.
I'm dating Marco. => I'm seeing Luis now.
Priya is married to Tom. => Priya and Tom got divorced.
Priya owns the billing service. => Tom took over the billing service from Priya.
Priya is in charge of the billing service. => The billing service now belongs to Tom.
The owner of the search index is Priya. => Priya handed the search index over to Tom.
Priya leads the mobile team. => Tom is the new lead of the mobile team.
The gym membership costs 30 euros a month. => The gym raised the membership to 35 euros.
The rent is 900 euros. => Our rent went up to 950 euros.
We run Postgres 14. => We upgraded Postgres to 16.
The request timeout is 30 seconds. => We set the request timeout to 60 seconds, up from 30.
The request timeout is 30 seconds. => I changed the request timeout to 60 seconds.
The wifi password is plum-tree-7. => The wifi password has changed, it is now fig-leaf-9.
The project is called Kestrel. => We renamed the project to Osprey.
I drink coffee every morning. => I gave up coffee.
I run every morning before work. => I switched from running to swimming.
I eat meat most days. => I no longer eat meat.
I'm a vegetarian. => I stopped being vegetarian and eat fish again.
I take the bus to work. => I cycle to work now.
I go to yoga on Tuesdays. => My yoga class is on Thursdays now.
We use Slack for chat. => We switched from Slack to Zulip.
We're going to Rome in June. => The Rome trip is cancelled.
I drive a Golf. => I sold my Golf and bought a Tesla.
My manager is Carla. => My manager is now Devin.
The deadline for the report is 3 March. => The deadline for the report was extended to 10 March.
Our doctor is Dr. Lund. => Our new doctor is Dr. Moe.
Ann plays the cello every evening. => Ann stopped playing the cello.
The cat is called Miso. => We renamed the cat Tofu.
I smoke a pack a day. => I quit smoking.
I'm meeting Lena on Friday at noon. => Lena and I moved our meeting to Saturday at noon.
The default branch is master. => The default branch is main now.
My flight leaves at 7:40 am. => My flight was delayed to 9:15 am.
I study physics at Bergen. => I switched my major to chemistry.
I play tennis on Saturdays. => I play tennis on Sundays now instead of Saturdays.
Tickets cost 12 dollars. => Tickets now cost 15 dollars.
Marta lives in Lisbon. => Marta has moved to Porto.
I'm living in Berlin at the moment. => We've relocated to Hamburg for my job.
My flat is on Elm Street. => I moved out of the Elm Street flat and into a house on Oak Road.
Our family lives in Leeds. => Our family moved to York last month.
Jonas lives with his parents. => Jonas moved into his own apartment in Mitte.
I'm based in our Dublin office. => I'm now based in our Cork office.
Lena lives in Graz. => Lena doesn't live in Graz anymore, she is in Linz now.
I live on Baker Street. => My new address is 14 Mill Lane.
My address is 3 Oak Road. => My new address is 14 Mill Lane.
Home for us is Malmö. => Home is now Lund.
Sofia works at Brightline as an analyst. => Sofia left Brightline; she is with Nordwind now.
I work for the city library. => I handed in my notice at the library and started at a bookshop.
Omar is a chemistry teacher. => Omar retrained as a software developer.
My job is at the harbour office. => I got a new job at the airport.
Kai is our backend engineer. => Kai has been promoted to engineering manager.
I'm an intern at Veloz. => I'm a full-time engineer at Veloz now.
Nina works as a barista. => Nina quit her barista job and now works at a bank.
Paul is employed by Siemens. => Paul was laid off from Siemens.
My number is +47 900 11 222. => I changed my phone number, it's +47 911 33 444 now.
Write to me at lee@mail.net. => My email changed: lee.tan@post.org
Rosa's phone number is 020 7946 0018. => Rosa has a new phone number: 020 7946 0999.
The support line is 0800 111 222. => The support line changed to 0800 333 444.
My Telegram handle is @leaf. => I changed my Telegram handle to @branch.
You can call me at 555-0101. => My old number is dead, call me at 555-0177 instead.
The team retreat is on 3 June. => The team retreat got moved to 17 June.
The dentist is booked for Monday at 4 pm. => I had to reschedule the dentist to Wednesday at 9 am.
Book club meets on the first Tuesday of the month. => Book club now meets on Thursdays.
Dinner with Ida is on Friday at 7. => Dinner with Ida is pushed to Saturday at 8.
My interview is on 12 April at 10:00. => They moved my interview to 15 April at 14:00.
The release is planned for Tuesday. => The release slipped to Thursday.
The demo is at 2 pm. => The demo is at 4 pm instead.
Our flight to Madrid is on 9 May. => We rebooked our flight to Madrid for 11 May.
The concert is on Saturday. => The concert has been cancelled.
We're meeting at Cafe Luna. => Change of plan: we're meeting at Cafe Sol instead.
My favourite colour is blue. => My favourite colour is green these days.
My favorite food is sushi. => I've gone off sushi; ramen is my favorite food now.
Tom's favourite film is Alien. => Tom says his favourite film is now Heat.
My favourite author is Le Guin. => These days my favourite author is Butler.
I prefer tea over coffee. => I prefer coffee over tea now.
Eva's favourite sport is tennis. => Eva has switched to padel as her favourite sport.
I'm engaged to Nils. => Nils and I called off our engagement.
Mia is dating Jack. => Mia broke up with Jack and is seeing Leo.
I am single. => I'm engaged to Noor!
Eli and Zoe are married. => Eli and Zoe have divorced.
My roommate is Pete. => Pete moved out; my new roommate is Quinn.
My boss is Helen. => Helen left, my new boss is Ivan.
My best friend is Ula. => Ula and I fell out, my best friend is Vera now.
Dana owns the deployment pipeline. => Dana handed the deployment pipeline over to Chris.
The payments module is owned by Raj. => Raj's payments module is now owned by Mei.
Felix is responsible for the newsletter. => Greta is responsible for the newsletter now.
Hugo leads the data team. => Iris has taken over the data team from Hugo.
Who is on call: Jan is on call this week. => Kim is on call now instead of Jan.
The contact for invoices is Lars. => The contact for invoices is now Mona.
Our rent is 1,200 euros a month. => The landlord raised our rent to 1,350 euros a month.
The subscription costs $9 a month. => The subscription went up to $12 a month.
The budget for the offsite is 5000 dollars. => The budget for the offsite was cut to 3500 dollars.
We have 12 people on the team. => The team grew to 15 people.
A day pass is 8 euros. => A day pass is 10 euros now.
The API rate limit is 100 requests per minute. => The API rate limit was raised to 250 requests per minute.
We're on Python 3.9. => We migrated to Python 3.12.
The service runs on Node 16. => The service was upgraded to Node 20.
The cache TTL is set to 5 minutes. => The cache TTL is now 15 minutes.
The server listens on port 8080. => The server listens on port 9090 now.
The staging database is MySQL. => We replaced MySQL with Postgres on staging.
Log level is set to info. => Log level was changed to debug.
The feature flag new_search is off. => The feature flag new_search is on now.
We deploy on Fridays. => We no longer deploy on Fridays, we deploy on Tuesdays.
I go for a run every morning. => I stopped running in the mornings.
I go to the gym three times a week. => I'm down to once a week at the gym.
I take sugar in my coffee. => I no longer take sugar in my coffee.
Ann swims every Tuesday. => Ann swims on Thursdays now.
I smoke. => I quit smoking in March.
I read the paper on the train. => I listen to podcasts on the train now instead of reading the paper.
I drink two cups of coffee a day. => I've cut down to one cup of coffee a day.
I walk the dog at 6 am. => I walk the dog at 7 am now.
I commute by car. => I commute by train now.
I'm learning Spanish. => I dropped Spanish and I'm learning Italian now.
I play the violin. => I switched from the violin to the viola.
I use Vim as my editor. => I've switched my editor to Helix.
We're going to Crete in August. => We've changed our holiday plans: it's Sicily instead of Crete.
My car is a red Polo. => I traded the Polo for a Yaris.
The dog is called Rex. => We renamed Rex to Bruno.
The project's codename is Falcon. => The project's codename is Heron now.
The meeting room is Aurora. => The meeting room is now Borealis.
The shop opens at 9. => The shop opens at 10 from now on.
The office closes at 18:00. => Since June the office closes at 17:00.
My gym is FitHub. => I joined CityGym and cancelled FitHub.
Leo is vegetarian. => Leo eats meat again.
I'm allergic to nuts. => The allergist says I'm no longer allergic to nuts.
The bug is open. => The bug is fixed now.
Invoice 118 is unpaid. => Invoice 118 has been paid.
""")
KEPT = _pairs("""
I live in Bergen. => Did you move to Oslo?
I live in Bergen. => If I moved to Oslo, I'd miss the rain.
I live in Bergen. => I might move to Oslo next year.
I live in Bergen. => I would like to move to Oslo.
I live in Bergen. => I almost moved to Oslo.
I live in Bergen. => Tom said "I moved to Oslo" at the party.
I live in Bergen. => My sister moved to Oslo.
I live in Bergen. => Ben moved to Oslo.
I live in Bergen. => When I lived in Oslo, I had a cat.
I live in Oslo. => I used to live in Bergen.
I live in Bergen. => I love living in Bergen.
I live in Bergen. => I visited Oslo last week.
I live in Bergen. => We moved the couch to the bedroom.
I live in Bergen. => I moved to Bergen ten years ago.
I live in Oslo. => I moved here from Bergen ten years ago.
I live in Bergen. => The job in Oslo fell through, so we did not move to Oslo.
I work as a nurse. => I work at St Mary's.
I work as a nurse. => My mother quit her job.
The standup is at 9:30. => The retro is at 10:15 now.
The standup is at 9:30. => Should we move the standup to 10?
My dentist appointment is on Tuesday. => My doctor appointment was moved to Friday.
The rent is 900 euros. => The new phone costs 950 euros.
My favourite tea is Earl Grey. => My favourite band is Low.
My favourite tea is Earl Grey. => Ben's favourite tea is rooibos now.
I'm dating Marco. => Ben and Lena broke up.
I drink coffee every morning. => I had a coffee with Ben.
I run every morning. => I ran ten kilometres yesterday.
Ann paints every weekend. => Ann bought new paint.
My kids are so excited. => My kids are now at the beach.
I finished a painting last week. => I started a new painting.
I'm reading a book on bees. => I finished the book on bees.
Priya owns the billing service. => Tom now owns the search index.
I play tennis on Saturdays. => I played tennis on Sunday.
The launch is on 14 May. => We considered moving the launch to 2 June.
Ann works at Acme. => Ben started at Globex.
My phone number is 555-0142-778. => Ben's phone number is 555-0199-332.
We run Postgres 14. => Postgres 16 was released.
I have two dogs. => I now have a garden.
My mom lives in Rome. => I moved to Turin.
I eat meat. => Ben no longer eats meat.
Marta lives in Lisbon. => Marta's brother moved to Porto.
Marta lives in Lisbon. => Marta is visiting Porto now.
Marta lives in Lisbon. => Marta has moved to a new desk.
Omar is a teacher. => Omar's wife now works as a doctor.
The demo is at 2 pm. => The rehearsal is at 4 pm now.
The demo is at 2 pm. => The demo went well.
The demo is at 2 pm. => We talked about moving the demo to 4 pm.
Our rent is 1,200 euros. => Our insurance went up to 300 euros.
The API rate limit is 100 requests per minute. => The upload size limit is now 50 MB.
We run Postgres 14 in production. => We run Redis 7 now for the cache.
Dana owns the deployment pipeline. => Chris took over the billing module from Raj.
Dana owns the deployment pipeline. => Dana took over the newsletter from Lars.
My favourite colour is blue. => My daughter's favourite colour is now green.
I drink coffee. => My doctor stopped drinking coffee.
I'm dating Jack. => Mia broke up with Tom.
My dentist appointment is on Tuesday. => Your dentist appointment was moved to Friday.
I go to the gym on Mondays. => Ben goes to the gym on Thursdays now.
I live in Bergen. => They offered me a flat in Oslo, but I turned it down.
I live in Bergen. => We were going to move to Oslo, but it fell through.
I live in Bergen. => In my novel the hero moved to Oslo.
I live in Bergen. => I'm still living in Bergen.
I live in Bergen. => Everyone thinks I moved to Oslo.
I work at Acme. => Acme moved to a new building.
I work at Acme. => I'm now working on the Atlas project.
I work at Acme. => I started a pottery class at Studio Nine.
The launch is on 14 May. => The launch is still on 14 May.
The launch is on 14 May. => The launch party is now on 16 May.
My sister is vegan. => I eat meat again.
I have two cats. => I have two dogs now.
My phone number is 555-0142-778. => The clinic's new number is 555-0199-332.
I play the violin. => I bought a new violin.
We deploy on Fridays. => The other team no longer deploys on Fridays.
I run every morning. => I no longer run the bookshop.
The wifi password is plum-tree-7. => The alarm code has changed to 4411.
Ann is in charge of catering. => Ann is in charge of music now.
The cat is called Miso. => The new dog is called Tofu.
I take the bus to work. => I take the train to Rome now and then.
My mother's name is Ida. => My new neighbour's name is Vera.
""")


@pytest.mark.parametrize(("before", "after"), REPLACED)
def test_a_change_replaces_what_it_changed(before: str, after: str) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.type is LinkType.SUPERSEDES
    assert change.reason.startswith("says that ")


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_what_is_no_change_replaces_nothing(before: str, after: str) -> None:
    assert _change(before, after) is None


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("I live in Bergen.", "I moved to Oslo.", "says that Ann's home changed: Bergen \u2192 Oslo"),
        ("The standup is at 9:30.", "The standup is at 10:15 now.", "says that standup changed: 9:30 \u2192 10:15"),
        ("I'm dating Marco.", "Marco and I broke up.", "says that Ann's partner changed: Marco no more"),
        ("Dana owns the billing service.", "Tom took over the billing service from Dana.",
         "says that charge of billing service changed: Dana \u2192 Tom"),
        ("I drink coffee every day.", "I gave up coffee.", "says that this holds no more for Ann: coffee"),
        ("My sister lives in Rome.", "My sister moved to Turin.",
         "says that Ann's sister's home changed: Rome \u2192 Turin"),
    ],
)  # fmt: skip
def test_the_reason_is_one_that_people_understand(before: str, after: str, reason: str) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.reason == reason


def test_without_a_sign_the_later_date_decides_and_without_dates_nobody_does() -> None:
    dated = _change("Ann lives in Bergen.", "Ann lives in Oslo.")
    undated = _change("Ann lives in Bergen.", "Ann lives in Oslo.", dated=False)
    assert dated is not None
    assert dated.type is LinkType.SUPERSEDES
    assert undated is not None
    assert undated.type is LinkType.CONTRADICTS
    assert undated.reason == "says otherwise of Ann's home: Bergen / Oslo"


def test_the_one_spoken_of_may_speak_or_be_spoken_of() -> None:
    assert change_of(_note(1, "I live in Bergen.", day=0), _note(2, "Ann moved to Oslo.", role="Bob", day=9), True)
    assert not change_of(_note(1, "I live in Bergen.", day=0), _note(2, "I moved to Oslo.", role="Bob", day=9), True)


def test_she_is_who_was_named_before() -> None:
    assert _change("Dana lives in Porto.", "Dana has news, she moved to Lisbon.")
    assert not _change("Dana lives in Porto.", "She moved to Lisbon.")


def test_facts_and_parts_of_the_same_event_are_left_alone() -> None:
    old, new = _note(1, "I live in Bergen.", day=0), _note(2, "I moved to Oslo.", day=9)
    assert change_of(old, new, True)
    assert not change_of(old.model_copy(update={"kind": Kind.SEMANTIC}), new, True)
    assert not change_of(old, new.model_copy(update={"kind": Kind.INSIGHT}), True)
    assert not change_of(old.model_copy(update={"archived": True}), new, True)
    assert not change_of(old.model_copy(update={"event_ids": new.event_ids}), new, True)


def test_order_is_that_of_the_dates_and_else_of_arrival() -> None:
    one, other, undated = _note(1, "a", day=5), _note(2, "b", day=3), _note(3, "c")
    assert in_time(one, other) == in_time(other, one) == (other, one, True)
    assert in_time(one, undated) == in_time(undated, one) == (one, undated, False)


def test_late_news_are_replaced_by_what_came_next() -> None:
    late = _note(4, "I live in Voss.", day=10)
    others = [
        _note(1, "I live in Bergen.", day=0),
        _note(2, "I moved to Oslo.", day=20),
        _note(3, "I moved to Rome.", day=30),
    ]
    links, concerned = change_links(late, others, START)
    assert {(link.source, link.target) for link in links} == {("n_4", "n_1"), ("n_2", "n_4")}
    assert {note.id for note in concerned} == {"n_1", "n_2"}
    assert {link.recorded_at for link in links} == {START}


def test_doubt_never_raises_confidence() -> None:
    assert doubted(_note(1, "a")) == {"confidence": DOUBTED_CONFIDENCE}
    assert doubted(_note(1, "a", confidence=0.2)) == {"confidence": 0.2}


WORDS = st.sampled_from(
    "I my the Ann Oslo Bergen moved live in to now no longer is at on 9 10 Friday work as nurse"
    " if not he she it 's , . ? !"
    ' favourite tea renamed quit instead of from \u2192 \u00e9 \U0001f600 [ "'.split()
)


@given(st.lists(WORDS, max_size=25), st.lists(WORDS, max_size=25))
def test_any_two_texts_can_be_compared_and_none_replaces_itself(one: list[str], other: list[str]) -> None:
    before, after = _note(1, " ".join(one) or "-", day=0), _note(2, " ".join(other) or "-", day=1)
    change = change_of(before, after, True)
    assert change is None or may_change(after)
    copy = before.model_copy(update={"id": "n_3", "event_ids": ("e_3",), "seq": 3})
    again = change_of(before, copy, True)
    assert again is None or "holds no more" in again.reason


@given(st.sampled_from(REPLACED))
def test_a_question_about_the_same_replaces_nothing(pair: tuple[str, str]) -> None:
    before, after = pair
    assert _change(before, after.replace(".", "").replace("!", "").replace(";", ",") + "?") is None


@given(st.sampled_from(KEPT + REPLACED))
def test_an_order_of_arrival_without_dates_needs_a_sign(pair: tuple[str, str]) -> None:
    change, dated = _change(*pair, dated=False), _change(*pair)
    assert (change is None) == (dated is None)
