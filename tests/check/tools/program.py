import argparse


def build_parser():
    return argparse.ArgumentParser()


def main():
    print(build_parser().parse_args())


if __name__ == "__main__":
    main()
