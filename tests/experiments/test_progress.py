from superarm.experiments.execution.progress import TaskProgress


class Counted:
    rounds = 0

    def advance(self, n):
        self.rounds += n

    def say(self, text):
        self.text = text


def test_a_restarted_task_is_not_counted_twice():
    bar = Counted()
    progress = TaskProgress(bar)
    for number, done in [(0, 10), (1, 5), (0, 4), (0, 12)]:
        progress.report(number, done)
    assert bar.rounds == 17
    progress.show("x")
    assert bar.text == "x"
