from superarm.experiments.watch import Watch


class Counted:
    rounds = 0

    def advance(self, n):
        self.rounds += n

    def say(self, text):
        self.text = text


def test_a_task_that_begins_again_is_not_counted_twice():
    shown = Counted()
    watch = Watch(shown)
    for number, done in [(0, 10), (1, 5), (0, 4), (0, 12)]:
        watch.told(number, done)
    assert shown.rounds == 17
    watch.say("x")
    assert shown.text == "x"
