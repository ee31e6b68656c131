class Client:
    def __init__(self, name):
        self.name, self.asked = name, []

    def ask(self, what):
        self.asked.append(what)
        return "%s: %s" % (self.name, ", ".join(self.asked))
