"""Memory for coding agents: hooks that recall and store, and the settings that install them.

An agent runs ``hook.py`` at each of its events. That small program asks the hook service, a process that keeps the
memories of this user open (``service``), and prints its answer. ``protocols`` translates the events of each agent,
``recall`` writes the text for the agent's context, and ``capture`` stores turns. ``connect`` edits agents' settings.
"""
